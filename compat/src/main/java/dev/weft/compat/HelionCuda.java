package dev.weft.compat;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.tensor.DType;
import java.util.Objects;

/**
 * The calls of {@link Helion} on GPUs: copy engines pull the shards of A and write a word of
 * progress after every chunk, while the tiles of one kernel wait for the words of the rows that
 * they read. Every rank of the group calls, in the same order, each with its own GPU, stream and
 * progress. A and B may have any types and sizes; tensor cores multiply fp16 or bf16 whose rows
 * start at multiples of 16 bytes, plain fp32 arithmetic the rest.
 *
 * <p>A call queues its work behind what is on the caller's stream and returns: streams wait for
 * streams, and the host for none of them. As in the example, the ranks' hosts synchronize twice in
 * a call. A repeated call with the same symmetric matrix reserves nothing on the device.
 *
 * <p>Gathered A is byte-exact, and the bits of the product do not depend on the ranks, the splits,
 * the tiles or the order of arrival. A chunk that does not arrive within the group's deadline ends
 * the kernel, and the wait, with a {@link dev.weft.fabric.FabricException.StallException}.
 * Arguments that do not fit are refused with their values, which ends a collective call on the
 * other ranks too.
 */
public final class HelionCuda {

    private HelionCuda() {}

    /** Collective: a symmetric [rows, cols] on each rank's GPU, initially zero. */
    public static HelionShared<DeviceMatrix> empty(
            Fabric group, Gpu gpu, long rows, long cols, DType dtype) {
        return HelionChecks.orFail(
                group, () -> new HelionDeviceShared(group, gpu, rows, cols, dtype));
    }

    /** Gathered A and its product with B [K, N], with defaults: one split per rank. */
    public static HelionResult<DeviceMatrix> allGatherMatmul(
            Fabric group,
            Gpu gpu,
            HelionShared<DeviceMatrix> aShared,
            DeviceMatrix b,
            GpuStream stream) {
        return allGatherMatmul(group, gpu, aShared, b, false, null, null, 1, stream);
    }

    /**
     * Gathered A and its product with B, computed while A is arriving.
     *
     * @param aShared [M / ranks, K], written on {@code stream} or before; later work on {@code
     *     stream} may write it again
     * @param b [K, N], or [N, K] if {@code bTransposed}; each rank has its own
     * @param aOut contiguous [M, K] for gathered A, or null for a new one
     * @param progress set to 0 in stream order and then written chunk by chunk, or null to let the
     *     call use its own
     * @param splitsPerRank chunks of each shard; must divide its number of elements
     */
    public static HelionResult<DeviceMatrix> allGatherMatmul(
            Fabric group,
            Gpu gpu,
            HelionShared<DeviceMatrix> aShared,
            DeviceMatrix b,
            boolean bTransposed,
            DeviceMatrix aOut,
            DeviceProgress progress,
            int splitsPerRank,
            GpuStream stream) {
        return allGatherMatmul(
                group,
                gpu,
                aShared,
                b,
                bTransposed,
                aOut,
                null,
                progress,
                splitsPerRank,
                null,
                stream);
    }

    /**
     * The call with all options.
     *
     * @param c [M, N] of the type that holds A's and B's, or null for a new one
     * @param config how the product is cut, one that has a kernel, or null for the best one
     */
    public static HelionResult<DeviceMatrix> allGatherMatmul(
            Fabric group,
            Gpu gpu,
            HelionShared<DeviceMatrix> aShared,
            DeviceMatrix b,
            boolean bTransposed,
            DeviceMatrix aOut,
            DeviceMatrix c,
            DeviceProgress progress,
            int splitsPerRank,
            Helion.Config config,
            GpuStream stream) {
        return HelionChecks.orFail(
                group,
                () -> {
                    HelionDeviceShared shared = (HelionDeviceShared) aShared;
                    HelionChecks.sameGroup(group, shared.group(), "aShared");
                    HelionChecks.sameGpu(gpu, shared.gpu());
                    int words = progress == null ? Integer.MAX_VALUE : progress.size();
                    shared.check("aOut", aOut, words, splitsPerRank);
                    // Everything is loaded and reserved before the first product can wait on the
                    // GPU.
                    HelionProduct<DeviceMatrix, DeviceProgress> wanted =
                            new HelionProduct<>(
                                    aOut,
                                    b,
                                    bTransposed,
                                    c,
                                    progress,
                                    splitsPerRank,
                                    group.rank(),
                                    config);
                    return new HelionDeviceResult(shared, wanted).gatherAndLaunch(stream);
                });
    }

    /**
     * Queues the copies of every rank's {@code inp} into {@code output}, [M, K], own shard last,
     * and after each chunk the write of 1 into its word. Collective; returns once every rank has
     * queued its copies. They come after what is now on every rank's {@code stream}.
     *
     * @param progress word {@code source * splits + split} reports a chunk; not reset here
     * @return the backend stream that copies, always the same one for {@code inp}
     */
    public static HelionGather copyEngineAllGatherWithProgress(
            DeviceMatrix output,
            HelionShared<DeviceMatrix> inp,
            DeviceProgress progress,
            int splitsPerRank,
            GpuStream stream) {
        return HelionChecks.orFail(
                inp.group(),
                () -> {
                    inp.check("aOut", output, progress.size(), splitsPerRank);
                    ProgressGather copies = ((HelionDeviceShared) inp).gather();
                    copies.start(output, progress, splitsPerRank, stream);
                    return copies.running();
                });
    }

    /**
     * Queues the product of {@code a} with B; each tile first waits until the words of all chunks
     * that it reads are 1 or more. Whatever fills {@code a} writes them: the copy engine, or the
     * caller by {@link DeviceProgress#publish}, on another stream than {@code stream}.
     *
     * @param a [M, K], gathered or being gathered
     * @param aShared says how many rows each rank owns
     * @param rank tiles are taken in order, starting with the shard after this rank's
     * @return {@code a} and the product, of the type that holds A's and B's
     */
    public static HelionResult<DeviceMatrix> matmulWithProgress(
            DeviceMatrix a,
            HelionShared<DeviceMatrix> aShared,
            DeviceMatrix b,
            boolean bTransposed,
            DeviceProgress progress,
            int splitsPerRank,
            int rank,
            GpuStream stream) {
        return matmulWithProgress(
                a, aShared, b, bTransposed, null, progress, splitsPerRank, rank, null, stream);
    }

    /**
     * The product with all options.
     *
     * @param c receives the product, [M, N] of the type that holds A's and B's, or null for a new
     *     one
     * @param config how the product is cut, one that has a kernel, or null for the best one
     */
    public static HelionResult<DeviceMatrix> matmulWithProgress(
            DeviceMatrix a,
            HelionShared<DeviceMatrix> aShared,
            DeviceMatrix b,
            boolean bTransposed,
            DeviceMatrix c,
            DeviceProgress progress,
            int splitsPerRank,
            int rank,
            Helion.Config config,
            GpuStream stream) {
        // Without one, no chunk would ever be reported.
        Objects.requireNonNull(progress, "progress");
        aShared.check("a", a, progress.size(), splitsPerRank);
        HelionChecks.rank(rank, aShared.group().size());
        HelionProduct<DeviceMatrix, DeviceProgress> wanted =
                new HelionProduct<>(a, b, bTransposed, c, progress, splitsPerRank, rank, config);
        return new HelionDeviceResult((HelionDeviceShared) aShared, wanted).launch(stream);
    }
}
