/**
 * The operators on NVIDIA GPUs. {@link dev.weft.cuda.op.CudaAllGatherMatmul}: gathered A arrives by
 * the copy engines, which use no multiprocessor, and one persistent kernel multiplies rows as they
 * come. {@link dev.weft.cuda.op.CudaMatmulReduce}: products are summed over the ranks.
 *
 * {@snippet :
 * static void multiply(Fabric fabric, Matrix shard, Matrix b, Matrix c) {
 *     Gpu gpu = Gpu.open(fabric.rank() % Gpu.count());
 *     Shards shards = Shards.even(c.rows(), fabric.size());
 *     try (CudaAllGatherMatmul op =
 *                     CudaAllGatherMatmul.on(fabric, gpu)
 *                             .a(shards, shard.dtype())
 *                             .b(b, false)
 *                             .output(c.dtype())
 *                             .prepare();
 *             GpuStream stream = GpuStream.create()) {
 *         op.nextShard().upload(shard, stream);
 *         op.call(op.nextShard()); // as often as you like
 *         op.product(0).download(c, stream);
 *     }
 * }
 * }
 *
 * <p>Invariants: a flag is published in stream order after its chunk's bytes, never by a kernel,
 * which would wait behind the grid that waits for it. Flags hold the epoch of the latest call and
 * are never reset. Every wait on the device has a bound: past it the grid drains and the host
 * raises the typed exception. The sums of a product run in one order whatever arrives when, so its
 * bits depend on A, B and K alone. Everything that a call needs is loaded, allocated and encoded
 * when the operator is prepared: an allocation or a first load during a waiting grid can wait for
 * it.
 *
 * <p>In a ring of two buffers no grid waits: each shard has a launch of its own, and streams wait
 * for events that are recorded by then. What overwrites a shard comes behind its product and its
 * copies.
 *
 * <p>Sums over ranks: the kernel continues sums whose flag has come. It counts the tiles of a block
 * that it has stored, and the streams that copy the block away wait for that count. They are queued
 * behind the launch, so the grid waits for none of them.
 *
 * <p>Between hosts rows go through pinned memory: a stream brings a rank's chunks there, threads
 * move them with the fabric's movers, and the copy to the device is queued when a chunk has come,
 * so that no stream ever waits for the network.
 */
package dev.weft.cuda.op;
