package dev.weft.bench.cpu;

import dev.weft.bench.peers.ChildCommand;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Runs of {@code weft run} in a JVM of their own, alike but for algorithm, launcher and N. Each
 * measures all views in turns and verifies its product; one that fails ends the bench. Used by one
 * thread.
 *
 * @param folder where inputs and records go
 * @param rows M of the product
 * @param inner K of the product
 * @param workersPerRank threads of each rank that multiply
 */
record OverlapRuns(
        Path folder,
        long rows,
        long inner,
        int ranks,
        int workersPerRank,
        int warmup,
        int iterations) {

    private static final Duration LIMIT = Duration.ofMinutes(5);
    private static final long ELEMENT_BYTES = Float.BYTES;

    /**
     * @param more further arguments of the run
     */
    RunFigures run(String algorithm, String launcher, long columns, String... more)
            throws IOException, InterruptedException {
        Path record = folder.resolve("record.json");
        List<String> arguments =
                new ArrayList<>(
                        List.of(
                                "run -n %d --gm %d --gk %d --gn %d --dtype fp32 --quiet"
                                        .formatted(ranks, rows, inner, columns)
                                        .split(" ")));
        arguments.addAll(
                List.of(
                        "--algorithm %s --launcher %s --compute-blocks %d --warmup %d --iterations %d"
                                .formatted(algorithm, launcher, workersPerRank, warmup, iterations)
                                .split(" ")));
        arguments.addAll(List.of("--json", record.toString()));
        // The next N writes over it: never two problems on the disk at once.
        arguments.addAll(List.of("--data-dir", folder.resolve("data").toString()));
        arguments.addAll(List.of(more));
        if (!arguments.contains("--op")) {
            // Every rank multiplies by as many columns as the peers that it is compared with.
            arguments.addAll(List.of("--rhs", "replicated"));
        }
        try {
            ChildCommand.weft(arguments, folder).run(LIMIT);
            return RunFigures.read(record);
        } finally {
            Files.deleteIfExists(record);
        }
    }

    /** Cores that multiply in the runs. */
    int cores() {
        return ranks * workersPerRank;
    }

    /** Bytes of A, on all ranks together. */
    long matrixBytes() {
        return rows * inner * ELEMENT_BYTES;
    }

    /**
     * Bytes that the lanes of all ranks move in one call: every rank gets all shards but its own.
     */
    long movedBytes() {
        return (ranks - 1) * matrixBytes();
    }

    long chunkBytes(RunFigures run) {
        return run.chunkRows() * inner * ELEMENT_BYTES;
    }

    String describe(String algorithm, String launcher, long columns) {
        return "%s, %d ranks as %s, %d x %d x %d fp32"
                .formatted(algorithm, ranks, launcher, rows, inner, columns);
    }
}
