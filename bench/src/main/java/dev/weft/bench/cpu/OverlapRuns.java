package dev.weft.bench.cpu;

import dev.weft.bench.peers.ChildCommand;
import dev.weft.report.RunRecord;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/**
 * Runs of {@code weft run} in a JVM of their own, alike but for algorithm, launcher and N. Each
 * measures all views in turns and verifies its product; one that fails ends the bench. Used by one
 * thread.
 *
 * @param folder where inputs and records go
 * @param workersPerRank threads of each rank that multiply
 */
record OverlapRuns(
        Path folder, long m, long k, int ranks, int workersPerRank, int warmup, int iterations) {

    private static final Duration LIMIT = Duration.ofMinutes(5);
    private static final long ELEMENT_BYTES = Float.BYTES;

    /**
     * @param more further arguments of the run
     */
    RunRecord run(String algorithm, String launcher, long columns, String... more)
            throws IOException, InterruptedException {
        String shape = "-n %d --gm %d --gk %d --gn %d".formatted(ranks, m, k, columns);
        String how =
                "--dtype fp32 --algorithm %s --launcher %s --compute-blocks %d --warmup %d --iterations %d"
                        .formatted(algorithm, launcher, workersPerRank, warmup, iterations);
        // Every rank multiplies by as many columns as the peers that it is compared with.
        String rhs = List.of(more).contains("--op") ? "" : " --rhs replicated";
        return ChildCommand.run(folder, LIMIT, shape + " " + how + rhs, more);
    }

    /** Cores that multiply in the runs. */
    int cores() {
        return ranks * workersPerRank;
    }

    /** Bytes of A, on all ranks together. */
    long matrixBytes() {
        return m * k * ELEMENT_BYTES;
    }

    /**
     * Bytes that the lanes of all ranks move in one call: every rank gets all shards but its own.
     */
    long movedBytes() {
        return (ranks - 1) * matrixBytes();
    }

    long chunkBytes(RunRecord run) {
        return run.ranks().getFirst().chunkRows() * k * ELEMENT_BYTES;
    }

    String describe(String algorithm, String launcher, long columns) {
        return "%s, %d ranks as %s, %d x %d x %d fp32"
                .formatted(algorithm, ranks, launcher, m, k, columns);
    }
}
