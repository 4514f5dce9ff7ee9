package dev.weft.cli.options;

import dev.weft.op.OperatorBuilder;
import dev.weft.op.ReduceBuilder;
import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.AscendChunkRule;
import dev.weft.plan.cut.Cut;
import java.time.Duration;
import java.util.Locale;

/**
 * How a problem is run, checked and complete. Zero stands for Weft's own choice.
 *
 * @param cuda whether ranks multiply on GPUs
 * @param hostPeers whether only rank 0 runs, with the other shards in host memory
 * @param start what the ranks are, and who starts them
 * @param link bits per second that a rank's chunks are limited to; 0 for no limit
 * @param engine the engine of the product: auto, native, vector, scalar or openblas; gated or
 *     cublas on a GPU
 * @param computeWorkers threads, or thread blocks of the grid on a GPU
 * @param commWorkers threads, or copy streams on a GPU
 * @param ascendTiles null unless the Ascend example's chunk rule is wanted
 * @param iterations measured rounds; 0 for as many as it takes to know what overlap saves
 * @param npy whether outputs are written for NumPy too
 * @param epilogue the steps of an epilogue, as {@link dev.weft.op.Epilogue#parse} reads them; null
 *     if there is none
 * @param summing null if rows of A are gathered
 */
public record ExecutionSpec(
        boolean cuda,
        boolean hostPeers,
        PlanWriter algorithm,
        Launcher start,
        long link,
        String engine,
        int computeWorkers,
        int commWorkers,
        Cut cut,
        AscendTiles ascendTiles,
        int warmup,
        int iterations,
        boolean keepGathered,
        boolean npy,
        String epilogue,
        Duration deadline,
        Summing summing) {

    /** How products are summed, instead of {@link #algorithm}. */
    public record Summing(Reduction reduction, Reduction.Order order) {}

    /** Tile sizes of the Ascend example's chunk rule. */
    public record AscendTiles(long baseM, long baseN) {}

    /** What the ranks are. */
    public enum Launcher {
        THREADS,
        PROCESSES,
        MPI;

        String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** One call on this CPU's threads with this cut; {@code newAlgorithm} may be one that sums. */
    public ExecutionSpec onCpu(PlanWriter newAlgorithm, int lanes, Cut newCut) {
        return new ExecutionSpec(
                false,
                false,
                newAlgorithm,
                Launcher.THREADS,
                link,
                engine,
                0,
                lanes,
                newCut,
                null,
                0,
                1,
                keepGathered,
                npy,
                epilogue,
                deadline,
                summing == null
                        ? null
                        : new Summing(Reduction.of(newAlgorithm.label()), summing.order));
    }

    /** How shards are cut, by the Ascend example's rule if it is wanted. */
    public Cut cut(Shards shards, long k) {
        if (ascendTiles == null) {
            return cut;
        }
        AscendChunkRule rule =
                AscendChunkRule.of(shards.maxRows(), k, ascendTiles.baseM, ascendTiles.baseN);
        return new Cut(rule.rows(), 0, rule.cols() < k ? rule.cols() : 0);
    }

    /** This execution, with its cut computed for a problem. */
    public ExecutionSpec cutFor(ProblemSpec problem) {
        return new ExecutionSpec(
                cuda,
                hostPeers,
                algorithm,
                start,
                link,
                engine,
                computeWorkers,
                commWorkers,
                cut(problem.shards(), problem.k()),
                null,
                warmup,
                iterations,
                keepGathered,
                npy,
                epilogue,
                deadline,
                summing);
    }

    /** A call of a source system, with everything else left to Weft. */
    public static ExecutionSpec plain(
            boolean cuda,
            PlanWriter algorithm,
            Launcher start,
            int warmup,
            int iterations,
            Duration deadline) {
        return new ExecutionSpec(
                cuda,
                false,
                algorithm,
                start,
                0,
                cuda ? "gated" : "auto",
                0,
                0,
                Cut.AUTOMATIC,
                null,
                warmup,
                iterations,
                false,
                false,
                null,
                deadline,
                null);
    }

    /** Whether the user has added the algorithm. */
    public boolean isOwnAlgorithm() {
        return summing == null && !(algorithm instanceof Algorithm);
    }

    /** Whether the views are the Ascend example's, as the chunks are. */
    public boolean hasViewsOfExample() {
        return ascendTiles != null;
    }

    /** The name of the requested algorithm. */
    public String algorithmLabel() {
        return summing == null ? algorithm.label() : summing.reduction.label();
    }

    public String launcher() {
        return start.label();
    }

    /** Where the peers' shards are, in the words of run records; null on the CPU. */
    public String peers() {
        if (!cuda) {
            return null;
        }
        return hostPeers ? "host" : "device";
    }

    /** Like {@link #describe(OperatorBuilder, ProblemSpec, int)}, if products are summed. */
    public <B extends ReduceBuilder<?, B>> B describe(
            B builder, ProblemSpec problem, int worldRank) {
        builder.a(problem.shards(worldRank), problem.inner(worldRank), problem.aType())
                .output(problem.outType())
                .engine(engine);
        if (cut.chunkRows() > 0) {
            builder.chunkRows(cut.chunkRows());
        }
        if (cut.splitsPerRank() > 0) {
            builder.splitsPerRank(cut.splitsPerRank());
        }
        if (cuda && computeWorkers > 0) {
            builder.computeWorkers(computeWorkers);
        }
        return builder;
    }

    /**
     * Sets everything about the problem and the execution on a rank's operator, except for B and
     * the algorithm.
     */
    public <B extends OperatorBuilder<?, B>> B describe(
            B builder, ProblemSpec problem, int worldRank) {
        Shards shards = problem.shards(worldRank);
        if (problem.fp8() == null) {
            builder.a(shards, problem.aType());
        } else {
            builder.scaledA(shards, problem.multipliedA(), problem.fp8().scaling());
        }
        builder.output(problem.outType()).engine(engine);
        if (computeWorkers > 0) {
            builder.computeWorkers(computeWorkers);
        }
        if (commWorkers > 0) {
            builder.commWorkers(commWorkers);
        }
        Cut cut = cut(shards, problem.k());
        if (cut.chunkRows() > 0) {
            builder.chunkRows(cut.chunkRows());
        }
        if (cut.chunkCols() > 0) {
            builder.chunkCols(cut.chunkCols());
        }
        if (cut.splitsPerRank() > 0) {
            builder.splitsPerRank(cut.splitsPerRank());
        }
        // With cuBLAS, rows wait in stream order, so there is nothing to count.
        if (ascendTiles != null && !engine.equals("cublas")) {
            builder.waitForSummary();
        }
        return builder;
    }
}
