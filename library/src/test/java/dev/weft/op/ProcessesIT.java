package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.ChildJvm;
import dev.weft.fabric.memory.ShmJob;
import dev.weft.plan.Algorithm;
import dev.weft.process.EveryOtherCase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Ranks that are real processes: right results, and what happens when one is killed or stopped. */
@Execution(ExecutionMode.CONCURRENT)
class ProcessesIT {

    private final List<ChildJvm> ranks = new ArrayList<>();

    @AfterEach
    void endAll() {
        ranks.forEach(ChildJvm::close);
    }

    private void start(ShmJob job, int size, Duration deadline, String... args) {
        for (int r = 0; r < size; r++) {
            Map<String, String> environment = job.environment(r, size, deadline);
            ranks.add(
                    ChildJvm.start(
                            List.of(), ChildJvm.CHEAP, ProcessRank.class, environment, args));
        }
    }

    private static Set<String> names(Path folder) throws IOException {
        Set<String> names = new HashSet<>();
        try (Stream<Path> entries = Files.list(folder)) {
            entries.forEach(entry -> names.add(entry.getFileName().toString()));
        }
        return names;
    }

    @Test
    void everyAlgorithmIsBitwiseRightBetweenProcesses() throws IOException {
        assertAllRight(4, "all");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void everyAlgorithmTypeAndLayoutIsRightOnAnyNumberOfProcesses(int count) throws IOException {
        assertAllRight(count, "types");
    }

    @Tag("long")
    @ParameterizedTest
    @ValueSource(ints = {5, 8})
    void soItIsOnMany(int count) throws IOException {
        assertAllRight(count, "types");
    }

    private void assertAllRight(int count, String what) throws IOException {
        Path folder;
        try (ShmJob job = ShmJob.create()) {
            folder = job.folder();
            start(job, count, Duration.ofSeconds(60), what);
            for (ChildJvm rank : ranks) {
                assertEquals(0, rank.exitCode(), () -> String.join("\n", rank.output()));
                long right =
                        rank.output().stream().filter(line -> line.startsWith("right ")).count();
                assertEquals(Algorithm.values().length, right);
            }
            assertEquals(Set.of("starter.lock"), names(folder));
        }
        assertFalse(Files.exists(folder));
    }

    /** Asserts that rank {@code rank} was ended by {@code culprit} and by nothing else. */
    private String endedBy(int culprit, int rank) {
        ChildJvm child = ranks.get(rank);
        String report = child.awaitLine("report ");
        assertTrue(report.startsWith("FailureReport[rank=" + rank + ","), report);
        assertTrue(report.matches(".* call=[1-9]\\d*, waits=\\[Wait.*"), report);
        assertEquals(ranks.size(), report.split("Peer\\[").length, report);
        String[] end = child.awaitLine("ended ").split(" ", 3);
        String said = String.join(" ", end);
        assertEquals(culprit, Integer.parseInt(end[1]), said);
        assertTrue(end[2].startsWith("rank " + rank + ": "), said);
        assertTrue(end[2].contains("rank " + culprit), said);
        assertEquals(ProcessRank.ENDED_BY_A_PEER, child.exitCode());
        return end[0];
    }

    @EveryOtherCase
    @ParameterizedTest
    @EnumSource(names = {"RING", "DIRECT"})
    void aKilledRankIsNamedByAllOthersAndLeavesNothing(Algorithm algorithm) throws IOException {
        int victim = 1;
        Path folder;
        try (ShmJob job = ShmJob.create()) {
            folder = job.folder();
            start(job, 3, Duration.ofSeconds(60), "endless", algorithm.label());
            ranks.forEach(rank -> rank.awaitLine("running"));
            ranks.get(victim).kill();
            List<String> ends = List.of(endedBy(victim, 0), endedBy(victim, 2));
            assertTrue(ends.contains("PeerLostException"), "the first to notice: " + ends);
            assertEquals(
                    Set.of("starter.lock", "rank-1.lock"), names(folder), "no memory has a name");
        }
        assertFalse(Files.exists(folder));
    }

    @Test
    void aStoppedRankIsAStallForAllOthers() throws Exception {
        int victim = 2;
        try (ShmJob job = ShmJob.create()) {
            start(job, 3, Duration.ofSeconds(6), "hold", Integer.toString(victim));
            ranks.forEach(rank -> rank.awaitLine("running"));
            String pid = Long.toString(ranks.get(victim).pid());
            assertEquals(0, new ProcessBuilder("kill", "-STOP", pid).start().waitFor());
            List<String> ends = List.of(endedBy(victim, 0), endedBy(victim, 1));
            assertTrue(ends.contains("StallException"), "the first to notice: " + ends);
            ranks.get(victim).kill();
        }
    }
}
