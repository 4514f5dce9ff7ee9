/**
 * NVIDIA GPUs: their memory, matrices in it, and streams, which are queues of work.
 *
 * {@snippet :
 * static void roundTrip(Matrix a, Matrix copy) {
 *     Gpu.open(0);
 *     long bytes = DeviceMatrix.alignedBytes(a.dtype(), a.rows(), a.cols());
 *     try (DeviceBuffer buffer = DeviceBuffer.allocate(bytes);
 *             GpuStream stream = GpuStream.create()) {
 *         DeviceMatrix there = DeviceMatrix.in(buffer, a.dtype(), a.rows(), a.cols());
 *         there.upload(a, stream);
 *         there.download(copy, stream);
 *     }
 * }
 * }
 *
 * <p>The operators are in {@link dev.weft.cuda.op}.
 */
package dev.weft.cuda;
