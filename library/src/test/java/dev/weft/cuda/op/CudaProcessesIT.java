package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.Gpu;
import dev.weft.fabric.ChildJvm;
import dev.weft.fabric.memory.ShmJob;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Rings of two buffers, gathers, sums, and results that peers read, between processes on one GPU.
 */
@Tag("gpu")
class CudaProcessesIT {

    private final List<ChildJvm> ranks = new ArrayList<>();

    @BeforeEach
    void checkGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
    }

    @AfterEach
    void endAll() {
        ranks.forEach(ChildJvm::close);
    }

    private void start(ShmJob job, int size, Duration deadline, String what) {
        for (int r = 0; r < size; r++) {
            ranks.add(
                    ChildJvm.start(
                            List.of(),
                            ChildJvm.CHEAP,
                            CudaProcessRank.class,
                            job.environment(r, size, deadline),
                            what));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4})
    void ringsGathersAndResultsOfPeersAreRightBetweenProcesses(int count) throws IOException {
        try (ShmJob job = ShmJob.create()) {
            start(job, count, Duration.ofSeconds(40), "right");
            for (ChildJvm rank : ranks) {
                assertEquals(0, rank.exitCode(), () -> String.join("\n", rank.output()));
                long right =
                        rank.output().stream().filter(line -> line.startsWith("right ")).count();
                assertEquals(7 + DevicePeerResultsIT.Way.values().length, right);
            }
        }
    }

    @Test
    void aProcessThatDiesInTheRingIsNamed() throws IOException {
        int victim = 1;
        try (ShmJob job = ShmJob.create()) {
            start(job, 3, Duration.ofSeconds(8), "endless");
            ranks.forEach(rank -> rank.awaitLine("running"));
            ranks.get(victim).kill();
            for (int rank : new int[] {0, 2}) {
                String end = ranks.get(rank).awaitLine("ended ");
                assertEquals(victim, Integer.parseInt(end.split(" ")[1]), end);
                assertTrue(end.contains("rank " + victim), end);
            }
        }
    }

    /** Nobody can tell a stopped process from a slow one before the deadline has passed. */
    @Test
    void aProcessThatIsStoppedIsNamed() throws Exception {
        int victim = 1;
        try (ShmJob job = ShmJob.create()) {
            start(job, 3, Duration.ofSeconds(3), "endless");
            ranks.forEach(rank -> rank.awaitLine("running"));
            String pid = "" + ranks.get(victim).pid();
            assertEquals(0, new ProcessBuilder("kill", "-STOP", pid).start().waitFor());
            for (int rank : new int[] {0, 2}) {
                String end = ranks.get(rank).awaitLine("ended ");
                assertTrue(end.contains("rank " + victim), end);
            }
        }
    }
}
