package dev.weft.compat;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The Helion example's calls: a copy engine pulls the shards of A and reports every chunk, while
 * tiles of the product wait for the chunks that they read. Every rank of the group calls, in the
 * same order.
 *
 * <p>Gathered A is byte-exact, and the product is bitwise the unfused one. A call that cannot
 * complete ends on every rank with a {@link dev.weft.fabric.FabricException}. Arguments that do not
 * fit are refused with their values, which ends the call on the other ranks too.
 *
 * <p>For repeated calls with the same shape, a prepared {@link dev.weft.op.AllGatherMatmul} is
 * faster.
 */
public final class Helion {

    private Helion() {}

    /** Collective: a symmetric [rows, cols] on each rank of the group, initially zero. */
    public static HelionShared<Matrix> empty(Fabric group, long rows, long cols, DType dtype) {
        return HelionChecks.orFail(group, () -> new HelionShared.OnHost(group, rows, cols, dtype));
    }

    /** Reusable progress for {@code splitsPerRank} chunks of every rank. */
    public static HelionProgress progress(Fabric group, int splitsPerRank) {
        HelionChecks.group(group);
        HelionChecks.splits(splitsPerRank);
        int size = Math.multiplyExact(group.size(), splitsPerRank);
        return new HelionProgress(group, Arena.ofAuto().allocate(JAVA_INT, size));
    }

    /**
     * Reusable progress in the caller's memory.
     *
     * @param words 32-bit words, native or an {@code int[]}, that all threads may use; at least one
     *     for each chunk of all ranks
     */
    public static HelionProgress progress(Fabric group, MemorySegment words) {
        HelionChecks.group(group);
        HelionChecks.words(words);
        return new HelionProgress(group, words);
    }

    /**
     * How the product is cut: a tile of C of {@code blockM} x {@code blockN} waits for its rows of
     * A and is then multiplied in steps of {@code blockK}. The bits of C do not depend on it.
     *
     * <p>On the CPU any tile is possible, and settings for GPUs are ignored: the engine chooses
     * steps of K and what to load ahead. On GPUs only some configurations have kernels; others are
     * refused with a list of these.
     *
     * @param warps how many warps multiply a tile, on GPUs
     * @param stages blocks of K that are loaded ahead, on GPUs
     */
    public record Config(int blockM, int blockN, int blockK, int warps, int stages) {

        /** The example's configuration. */
        public static final Config EXAMPLE = new Config(128, 256, 64, 8, 3);

        public Config {
            if (blockM < 1 || blockN < 1 || blockK < 1 || warps < 1 || stages < 1) {
                throw new IllegalArgumentException(
                        ("tiles of %s x %s in steps of %s by %s warps in %s stages: expected at"
                                        + " least 1 of each")
                                .formatted(blockM, blockN, blockK, warps, stages));
            }
        }
    }

    /** Gathered A and its product with B [K, N], with defaults: one split per rank. */
    public static HelionResult<Matrix> allGatherMatmul(
            Fabric group, HelionShared<Matrix> aShared, Matrix b) {
        return allGatherMatmul(group, aShared, b, false, null, null, 1);
    }

    /**
     * Gathered A and its product with B, computed while A is arriving.
     *
     * @param aShared [M / ranks, K], written before the call; may be written again when the call
     *     returns
     * @param b [K, N], or [N, K] if {@code bTransposed}; each rank has its own
     * @param aOut [M, K] for gathered A, or null for a new one
     * @param progress reports the chunks on this rank; null to let the call use its own
     * @param splitsPerRank chunks of each shard; must divide its number of elements
     */
    public static HelionResult<Matrix> allGatherMatmul(
            Fabric group,
            HelionShared<Matrix> aShared,
            Matrix b,
            boolean bTransposed,
            Matrix aOut,
            HelionProgress progress,
            int splitsPerRank) {
        return allGatherMatmul(
                group, aShared, b, bTransposed, aOut, null, progress, splitsPerRank, null);
    }

    /**
     * The call with all options.
     *
     * @param c [M, N] of the type that holds A's and B's, or null for a new one
     * @param config how the product is cut, or null for what suits the machine
     */
    public static HelionResult<Matrix> allGatherMatmul(
            Fabric group,
            HelionShared<Matrix> aShared,
            Matrix b,
            boolean bTransposed,
            Matrix aOut,
            Matrix c,
            HelionProgress progress,
            int splitsPerRank,
            Config config) {
        HelionProduct<Matrix, HelionProgress> wanted =
                HelionChecks.orFail(
                        group,
                        () -> {
                            HelionChecks.sameGroup(group, aShared.group(), "aShared");
                            HelionChecks.checkK(aShared.cols(), b, bTransposed);
                            int words = progress == null ? Integer.MAX_VALUE : progress.size();
                            aShared.check("aOut", aOut, words, splitsPerRank);
                            Matrix gathered = aOut == null ? freshGathered(aShared) : aOut;
                            HelionChecks.allThreads("aOut", gathered.data());
                            HelionChecks.product(c, gathered, b, bTransposed);
                            return new HelionProduct<>(
                                    gathered,
                                    b,
                                    bTransposed,
                                    c,
                                    progress == null ? progress(group, splitsPerRank) : progress,
                                    splitsPerRank,
                                    group.rank(),
                                    config);
                        });
        return overlapped(aShared, wanted);
    }

    /** Uses a plain, contiguous A, which is first copied into symmetric memory. */
    public static HelionResult<Matrix> allGatherMatmul(
            Fabric group,
            Matrix a,
            Matrix b,
            boolean bTransposed,
            Matrix aOut,
            HelionProgress progress,
            int splitsPerRank) {
        HelionChecks.orFail(
                group,
                () -> {
                    HelionChecks.contiguous("A", Place.HOST.size(a));
                    return a;
                });
        try (HelionShared<Matrix> shared = empty(group, a.rows(), a.cols(), a.dtype())) {
            shared.local().copyFrom(a);
            return allGatherMatmul(group, shared, b, bTransposed, aOut, progress, splitsPerRank);
        }
    }

    private static Matrix freshGathered(HelionShared<Matrix> aShared) {
        long rows = Math.multiplyExact(aShared.rows(), (long) aShared.group().size());
        return Matrix.allocate(Arena.ofAuto(), aShared.dtype(), rows, aShared.cols());
    }

    private static HelionResult<Matrix> overlapped(
            HelionShared<Matrix> aShared, HelionProduct<Matrix, HelionProgress> wanted) {
        long startNs = System.nanoTime();
        HelionProgress progress = wanted.progress();
        int splits = wanted.splitsPerRank();
        HelionHostGather gather =
                HelionChecks.orFail(
                        aShared.group(),
                        () -> {
                            progress.begin(splits);
                            return gather(wanted.a(), aShared, progress, splits, startNs);
                        });
        HelionMatmul product;
        try {
            // B is packed while the first shard arrives.
            product = multiplied(aShared, wanted, startNs);
        } catch (RuntimeException e) {
            aShared.group().fail(e);
            throw firstCause(gather, e);
        } catch (Error e) {
            // The copy engine must not outlive the memory that the caller will free.
            aShared.group().fail(e);
            e.addSuppressed(firstCause(gather, new IllegalStateException(e)));
            throw e;
        }
        gather.await();
        long elapsedNs = System.nanoTime() - startNs;
        Timeline timeline =
                timeline(wanted.rank(), startNs, elapsedNs, gather.spans(), product.spans());
        return new HelionResult.OnHost(wanted.a(), product.c(), Optional.of(timeline));
    }

    private static Timeline timeline(
            int rank,
            long startNs,
            long elapsedNs,
            List<Timeline.Span> copies,
            List<List<Timeline.Span>> tiles) {
        List<Timeline.Track> tracks = new ArrayList<>();
        tracks.add(new Timeline.Track("lane-0", copies));
        for (int i = 0; i < tiles.size(); i++) {
            tracks.add(new Timeline.Track("compute-" + i, tiles.get(i)));
        }
        return new Timeline(rank, startNs, elapsedNs, tracks);
    }

    /** If the copy engine failed on its own, the product only noticed it. */
    private static RuntimeException firstCause(HelionGather gather, RuntimeException ofProduct) {
        try {
            gather.await();
            return ofProduct;
        } catch (RuntimeException ofGather) {
            boolean noticed =
                    ofProduct instanceof PeerFailedException
                            && !(ofGather instanceof PeerFailedException);
            RuntimeException cause = noticed ? ofGather : ofProduct;
            cause.addSuppressed(noticed ? ofProduct : ofGather);
            return cause;
        }
    }

    /**
     * Starts to pull every rank's {@code inp} into {@code output}, [M, K], own shard last, and
     * reports each chunk. Collective; returns once every rank has called it. Await the result
     * before the next collective call on the group.
     *
     * @param progress word {@code source * splits + split} becomes 1 when a chunk has been copied;
     *     not reset here, see {@link HelionProgress#begin}
     */
    public static HelionGather copyEngineAllGatherWithProgress(
            Matrix output, HelionShared<Matrix> inp, HelionProgress progress, int splitsPerRank) {
        return HelionChecks.orFail(
                inp.group(), () -> gather(output, inp, progress, splitsPerRank, System.nanoTime()));
    }

    private static HelionHostGather gather(
            Matrix output,
            HelionShared<Matrix> inp,
            HelionProgress progress,
            int splitsPerRank,
            long originNs) {
        inp.check("aOut", output, progress.size(), splitsPerRank);
        HelionChecks.allThreads("aOut", output.data());
        HelionChecks.sameGroup(inp.group(), progress.group(), "progress");
        return HelionHostGather.start(output, inp, progress, splitsPerRank, originNs);
    }

    /**
     * The product of {@code a} with B; each tile first waits for all chunks that it reads. Whatever
     * fills {@code a} publishes them: the copy engine, or the caller, by {@link
     * HelionProgress#publish} or by writing 1.
     *
     * @param a [M, K], gathered or being gathered
     * @param aShared says how many rows each rank owns
     * @param rank tiles are taken in order, starting with the shard after this rank's
     * @return a new matrix of the type that holds A's and B's, valid as long as something refers to
     *     it
     */
    public static Matrix matmulWithProgress(
            Matrix a,
            HelionShared<Matrix> aShared,
            Matrix b,
            boolean bTransposed,
            HelionProgress progress,
            int splitsPerRank,
            int rank) {
        return matmulWithProgress(
                a, aShared, b, bTransposed, null, progress, splitsPerRank, rank, null);
    }

    /**
     * The product with all options.
     *
     * @param c receives the product, [M, N] of the type that holds A's and B's, or null for a new
     *     one
     * @param config how the product is cut, or null for what suits the machine
     */
    public static Matrix matmulWithProgress(
            Matrix a,
            HelionShared<Matrix> aShared,
            Matrix b,
            boolean bTransposed,
            Matrix c,
            HelionProgress progress,
            int splitsPerRank,
            int rank,
            Config config) {
        return multiplied(
                        aShared,
                        new HelionProduct<>(
                                a, b, bTransposed, c, progress, splitsPerRank, rank, config),
                        System.nanoTime())
                .c();
    }

    private static HelionMatmul multiplied(
            HelionShared<Matrix> aShared,
            HelionProduct<Matrix, HelionProgress> wanted,
            long originNs) {
        Matrix a = wanted.a();
        HelionProgress progress = wanted.progress();
        HelionChecks.checkK(a.cols(), wanted.b(), wanted.bTransposed());
        aShared.check("a", a, progress.size(), wanted.splitsPerRank());
        HelionChecks.allThreads("a", a.data());
        HelionChecks.product(wanted.c(), a, wanted.b(), wanted.bTransposed());
        HelionChecks.sameGroup(aShared.group(), progress.group(), "progress");
        HelionChecks.rank(wanted.rank(), aShared.group().size());
        try (Arena arena = Arena.ofShared()) {
            HelionMatmul product = new HelionMatmul(wanted, aShared.rows(), arena);
            product.run(originNs);
            return product;
        }
    }
}
