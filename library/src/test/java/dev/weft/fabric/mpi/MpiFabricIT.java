package dev.weft.fabric.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.fabric.ChildJvm;
import dev.weft.ffi.MpiFamily;
import dev.weft.process.EveryOtherCase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The fabric between ranks on several hosts, all of which this machine plays; what ranks do is in
 * {@link MpiFabricChild} and {@link MpiEndChild}.
 */
@Execution(ExecutionMode.CONCURRENT)
class MpiFabricIT {

    private static final String LONG = "60000";

    @ParameterizedTest
    @CsvSource({"OPEN_MPI, 4, 2, 2+2", "MPICH, 3, 1, 1+1+1"})
    void itKeepsWhatEveryFabricPromises(MpiFamily family, int ranks, int perHost, String hosts) {
        MpiRanks start = MpiRanks.of(family, ranks).perHost(perHost);
        assertEquals("passed 13", start.run("passed ", MpiFabricChild.class, hosts));
    }

    @EveryOtherCase
    @ParameterizedTest
    @EnumSource
    void aRankMayLeaveWhileOthersStillMove(MpiFamily family) {
        MpiRanks.of(family, 3).perHost(1).run("ended ", MpiEndChild.class, "early", LONG);
    }

    @EveryOtherCase
    @ParameterizedTest
    @CsvSource({"OPEN_MPI, 0", "MPICH, 2"})
    void aRankThatHasLeftWaitsForThoseThatWorkOn(MpiFamily family, int perHost) {
        MpiRanks.of(family, 4).perHost(perHost).run("ended ", MpiEndChild.class, "late", "3000");
    }

    @EveryOtherCase
    @ParameterizedTest
    @EnumSource
    void theWorldCannotBeRenewed(MpiFamily family) {
        String refusal =
                MpiRanks.of(family, 2).perHost(1).run("ended ", MpiEndChild.class, "renewed", LONG);
        assertTrue(refusal.startsWith("ended ranks under MPI cannot meet again"), refusal);
    }

    @Test
    void aRankThatLeavesThoughAwaitedIsNamed() {
        MpiRanks start = MpiRanks.of(MpiFamily.MPICH, 3).perHost(1);
        try (ChildJvm child = start.start(MpiEndChild.class, "awaited", LONG)) {
            assertNotEquals(0, child.exitCode());
            String all = String.join("\n", child.output());
            assertTrue(
                    all.contains(": rank 1 left while chunk 4 of rank 1 (number 9) from rank 1"),
                    all);
        }
    }

    /** Memory must not go while messages to it or from it are under way. */
    @EveryOtherCase
    @ParameterizedTest
    @EnumSource
    void aRankThatThrowsAmongMovesEndsAllOthersInGoodOrder(MpiFamily family) {
        MpiRanks start = MpiRanks.of(family, 3).perHost(1);
        try (ChildJvm child = start.start(MpiEndChild.class, "throws", LONG)) {
            assertNotEquals(0, child.exitCode());
            String all = String.join("\n", child.output());
            assertTrue(all.contains("ended PeerFailedException 2 rank "), all);
            assertTrue(all.contains(": rank 2 failed: the press broke"), all);
            assertTrue(!all.contains("SIGSEGV") && !all.contains("backtrace"), all);
        }
    }

    /** Whom the mover names, though it moves to others too. */
    @Test
    void aMoverNamesTheRankThatStalls() throws Exception {
        MpiRanks start = MpiRanks.of(MpiFamily.OPEN_MPI, 3).perHost(1);
        try (ChildJvm child = start.start(MpiEndChild.class, "moves", "3000")) {
            long victim = 0;
            for (int r = 0; r < 3; r++) {
                String[] running = child.awaitLine("running ").split(" ");
                victim = running[0].equals("1") ? Long.parseLong(running[1]) : victim;
            }
            stop(victim);
            String end = child.awaitLine("ended ");
            assertTrue(end.matches("(Stall|PeerFailed)Exception 1 .*"), end);
        }
    }

    private static void stop(long pid) throws IOException, InterruptedException {
        assertEquals(0, new ProcessBuilder("kill", "-STOP", "" + pid).start().waitFor());
    }

    /** With messages of 16 MiB, and with as large ones as MPI can count. */
    @Tag("long")
    @ParameterizedTest
    @CsvSource({
        "OPEN_MPI, 16777216",
        "OPEN_MPI, 9000000000",
        "MPICH, 16777216",
        "MPICH, 9000000000"
    })
    void moreBytesThanAnIntCounts(MpiFamily family, long message) throws IOException {
        List<String> memory = Files.readAllLines(Path.of("/proc/meminfo"));
        long free =
                memory.stream()
                        .filter(line -> line.startsWith("MemAvailable:"))
                        .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")) << 10)
                        .sum();
        assumeTrue(free > 6L << 30, "needs 6 GiB of memory, free are " + (free >> 20) + " MiB");
        MpiRanks.of(family, 2)
                .perHost(1)
                .messages(message)
                .run("ended ", MpiEndChild.class, "huge", LONG);
    }
}
