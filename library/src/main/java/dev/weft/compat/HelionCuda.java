package dev.weft.compat;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.DeviceProgress;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;

/**
 * The Helion example's calls on GPUs, as {@link Helion} has them for the CPU: copy engines pull the
 * shards of A and write a word of progress after every chunk, while the tiles of one kernel wait
 * for the words of the rows that they read. Every rank of the group calls, in the same order, each
 * with a GPU, a stream and a progress of its own. A product takes fp16 or bf16, with rows that
 * start at multiples of 16 bytes; others are refused.
 *
 * <p>A call queues its work behind what is on the caller's stream and returns; awaiting what it
 * returns ends it. Gathered A is byte-exact, and the bits of the product do not depend on the
 * ranks, the splits or the order of arrival. A chunk that does not come within the group's deadline
 * ends the kernel, and the wait, with a {@link dev.weft.fabric.StallException}. Arguments that do
 * not fit are refused with their values, which ends a collective call on the other ranks too.
 *
 * <p>Who calls the same shape again and again gets more from a prepared {@link
 * dev.weft.cuda.CudaAllGatherMatmul}.
 */
public final class HelionCuda {

    private HelionCuda() {}

    /** Collective: a symmetric [rows, cols] on each rank's GPU, zero at first. */
    public static HelionDeviceShared empty(
            Fabric group, Gpu gpu, long rows, long cols, DType dtype) {
        return HelionChecks.orFail(
                group, () -> HelionDeviceShared.create(group, gpu, rows, cols, dtype));
    }

    /** Gathered A and its product with B [K, N], all else by default: one split per rank. */
    public static HelionDeviceResult allGatherMatmul(
            Fabric group, Gpu gpu, HelionDeviceShared aShared, DeviceMatrix b, GpuStream stream) {
        return allGatherMatmul(group, gpu, aShared, b, false, null, null, 1, stream);
    }

    /**
     * Gathered A and its product with B, while A is arriving.
     *
     * @param aShared [M / ranks, K], written on {@code stream} or before; free again when the
     *     result has been awaited
     * @param b [K, N], or [N, K] where {@code bTransposed}; the same on every rank
     * @param aOut contiguous [M, K] for gathered A, or null for a fresh one
     * @param progress set to 0 in stream order and then written chunk by chunk, or null for one of
     *     the call's own
     * @param splitsPerRank chunks of each shard; must divide its number of elements
     */
    public static HelionDeviceResult allGatherMatmul(
            Fabric group,
            Gpu gpu,
            HelionDeviceShared aShared,
            DeviceMatrix b,
            boolean bTransposed,
            DeviceMatrix aOut,
            DeviceProgress progress,
            int splitsPerRank,
            GpuStream stream) {
        return HelionChecks.orFail(
                group,
                () -> {
                    HelionChecks.sameGroup(group, aShared.group(), "aShared");
                    HelionChecks.sameGpu(gpu, aShared.gpu());
                    checkGather(aOut, aShared, progress, splitsPerRank);
                    gpu.bind();
                    List<DeviceBuffer> fresh = new ArrayList<>();
                    try {
                        DeviceMatrix gathered = aOut == null ? freshGathered(aShared, fresh) : aOut;
                        DeviceProgress words =
                                progress == null
                                        ? freshProgress(group.size() * splitsPerRank, fresh)
                                        : progress;
                        return overlapped(
                                aShared,
                                b,
                                bTransposed,
                                gathered,
                                words,
                                splitsPerRank,
                                stream,
                                fresh);
                    } catch (RuntimeException | Error e) {
                        fresh.forEach(DeviceBuffer::close);
                        throw e;
                    }
                });
    }

    private static DeviceMatrix freshGathered(
            HelionDeviceShared aShared, List<DeviceBuffer> fresh) {
        long rows = Math.multiplyExact(aShared.rows(), (long) aShared.group().size());
        long bytes = Math.max(1, rows) * aShared.local().pitchBytes();
        fresh.add(DeviceBuffer.allocate(bytes));
        return new DeviceMatrix(
                fresh.getLast().address(), aShared.dtype(), rows, aShared.cols(), aShared.cols());
    }

    private static DeviceProgress freshProgress(int words, List<DeviceBuffer> fresh) {
        fresh.add(DeviceBuffer.allocate((long) Integer.BYTES * words));
        return new DeviceProgress(fresh.getLast().address(), words);
    }

    private static HelionDeviceResult overlapped(
            HelionDeviceShared aShared,
            DeviceMatrix b,
            boolean bTransposed,
            DeviceMatrix aOut,
            DeviceProgress progress,
            int splits,
            GpuStream stream,
            List<DeviceBuffer> fresh) {
        int rank = aShared.group().rank();
        // Everything is loaded and reserved before the first product can wait on the device.
        HelionDeviceProduct product =
                HelionDeviceProduct.prepare(aOut, aShared, b, bTransposed, progress, splits, rank);
        HelionDeviceGather gather = null;
        try {
            progress.reset(stream);
            gather = HelionDeviceGather.start(aOut, aShared, progress, splits, stream);
            product.launch(stream);
            gather.join(stream);
            return new HelionDeviceResult(aOut, gather, product, fresh);
        } catch (RuntimeException | Error e) {
            if (gather != null) {
                gather.close();
            }
            product.close();
            throw e;
        }
    }

    /**
     * Queues the copies of every rank's {@code inp} into {@code output}, [M, K], own shard last,
     * and after each chunk the write of 1 into its word. Collective; it waits for what is on {@code
     * stream} and returns once every rank has queued its copies.
     *
     * @param progress word {@code source * splits + split} tells of a chunk; not reset here
     * @return the backend stream that copies, which every rank awaits and closes
     */
    public static HelionDeviceGather copyEngineAllGatherWithProgress(
            DeviceMatrix output,
            HelionDeviceShared inp,
            DeviceProgress progress,
            int splitsPerRank,
            GpuStream stream) {
        return HelionChecks.orFail(
                inp.group(),
                () -> {
                    checkGather(output, inp, progress, splitsPerRank);
                    inp.gpu().bind();
                    return HelionDeviceGather.start(output, inp, progress, splitsPerRank, stream);
                });
    }

    private static void checkGather(
            DeviceMatrix output, HelionDeviceShared inp, DeviceProgress progress, int splits) {
        int ranks = inp.group().size();
        HelionChecks.deviceSplits(inp.rows(), inp.cols(), ranks, splits);
        if (output != null) {
            HelionChecks.gathered("aOut", output, inp.local(), ranks);
        }
        if (progress != null) {
            HelionChecks.longEnough(progress.size(), ranks, splits);
        }
    }

    /**
     * Queues the product of {@code a} with B; each tile first waits for the words of all chunks
     * that it reads to be 1 or more. Whoever fills {@code a} writes them: the copy engine, or the
     * caller by {@link DeviceProgress#publish}, on another stream than {@code stream}.
     *
     * @param a [M, K], gathered or being gathered
     * @param aShared says how many rows each rank owns
     * @param rank tiles are taken from the shard after this rank's on
     * @return {@code a} and the product, of A's type, which the caller awaits and closes
     */
    public static HelionDeviceResult matmulWithProgress(
            DeviceMatrix a,
            HelionDeviceShared aShared,
            DeviceMatrix b,
            boolean bTransposed,
            DeviceProgress progress,
            int splitsPerRank,
            int rank,
            GpuStream stream) {
        HelionChecks.gathered("a", a, aShared.local(), aShared.group().size());
        HelionDeviceProduct product =
                HelionDeviceProduct.prepare(
                        a, aShared, b, bTransposed, progress, splitsPerRank, rank);
        try {
            product.launch(stream);
            return new HelionDeviceResult(a, null, product, List.of());
        } catch (RuntimeException | Error e) {
            product.close();
            throw e;
        }
    }
}
