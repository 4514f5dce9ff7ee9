package dev.weft.cli.options;

import dev.weft.plan.Reduction.Order;
import dev.weft.plan.cut.Cut;
import java.time.Duration;
import java.util.Locale;

/**
 * How a problem is run, checked and complete. Zero stands for Weft's own choice.
 *
 * @param algorithm the name of the requested algorithm
 * @param order the order of sums over ranks; whole if there are none
 * @param ascendTiles null unless the Ascend example's chunk rule is wanted
 * @param npy whether outputs are written for NumPy too
 * @param epilogue the steps of an epilogue, as {@link dev.weft.op.Epilogue#parse} reads them; null
 *     if there is none
 */
public record ExecutionSpec(
        Place place,
        String algorithm,
        Order order,
        Workers workers,
        Cut cut,
        AscendTiles ascendTiles,
        Rounds rounds,
        boolean keepGathered,
        boolean npy,
        String epilogue,
        Duration deadline) {

    /**
     * Where ranks run.
     *
     * @param cuda whether ranks multiply on GPUs
     * @param hostPeers whether only rank 0 runs, with the other shards in host memory
     * @param launcher what the ranks are, and who starts them
     * @param link bits per second that a rank's chunks are limited to; 0 for no limit
     */
    public record Place(boolean cuda, boolean hostPeers, Launcher launcher, long link) {

        /** Where the peers' shards are, in the words of run records; null on the CPU. */
        public String peers() {
            if (!cuda) {
                return null;
            }
            return hostPeers ? "host" : "device";
        }
    }

    /**
     * What multiplies and what moves chunks.
     *
     * @param engine the engine of the product: auto, native, vector, scalar or openblas; gated or
     *     cublas on a GPU
     * @param compute threads, or thread blocks of the grid on a GPU
     * @param comm threads, or copy streams on a GPU
     */
    public record Workers(String engine, int compute, int comm) {}

    /**
     * How often views are measured.
     *
     * @param iterations measured rounds; 0 for as many as it takes to know what overlap saves
     */
    public record Rounds(int warmup, int iterations) {}

    /** Tile sizes of the Ascend example's chunk rule. */
    public record AscendTiles(long baseM, long baseN) {}

    /** What the ranks are. */
    public enum Launcher {
        THREADS,
        PROCESSES,
        MPI;

        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** The same of another algorithm, with a cut that is computed. */
    public ExecutionSpec with(
            Place newPlace, String newAlgorithm, Workers newWorkers, Cut newCut, Rounds newRounds) {
        return new ExecutionSpec(
                newPlace,
                newAlgorithm,
                order,
                newWorkers,
                newCut,
                null,
                newRounds,
                keepGathered,
                npy,
                epilogue,
                deadline);
    }

    /** One call on this CPU's threads with this cut. */
    public ExecutionSpec onCpu(String newAlgorithm, int lanes, Cut newCut) {
        return with(
                new Place(false, false, Launcher.THREADS, place.link),
                newAlgorithm,
                new Workers(workers.engine, 0, lanes),
                newCut,
                new Rounds(0, 1));
    }

    /** A call of a source system, with everything else left to Weft. */
    public static ExecutionSpec plain(
            boolean cuda,
            String algorithm,
            Launcher launcher,
            int warmup,
            int iterations,
            Duration deadline) {
        return new ExecutionSpec(
                new Place(cuda, false, launcher, 0),
                algorithm,
                Order.WHOLE,
                new Workers(cuda ? "gated" : "auto", 0, 0),
                Cut.AUTOMATIC,
                null,
                new Rounds(warmup, iterations),
                false,
                false,
                null,
                deadline);
    }

    /** Whether the views are the Ascend example's, as the chunks are. */
    public boolean hasViewsOfExample() {
        return ascendTiles != null;
    }
}
