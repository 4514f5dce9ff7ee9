package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.ChildJvm;
import dev.weft.fabric.mpi.MpiRanks;
import dev.weft.ffi.MpiFamily;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** What the ranks of mpirun say when one of them is killed, stopped or throws. */
@Execution(ExecutionMode.CONCURRENT)
class MpiFailureIT {

    private static final long PATIENCE_SECONDS = 60;

    /** Process ids by rank, once all ranks are at work. */
    private static Map<Integer, ProcessHandle> awaitRunning(ChildJvm mpirun, int ranks) {
        Map<Integer, ProcessHandle> processes = new TreeMap<>();
        while (processes.size() < ranks) {
            String[] running = mpirun.awaitLine("running ").split(" ");
            long pid = Long.parseLong(running[1]);
            processes.put(Integer.parseInt(running[0]), ProcessHandle.of(pid).orElseThrow());
        }
        return processes;
    }

    /** The ends of {@code count} ranks, all of which name {@code culprit}, by their kind. */
    private static List<String> endsBy(int culprit, int count, ChildJvm mpirun) {
        List<String> kinds = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            String said = mpirun.awaitLine("ended ");
            String[] end = said.split(" ", 3);
            assertEquals(culprit, Integer.parseInt(end[1]), said);
            assertTrue(end[2].contains("rank " + culprit), said);
            kinds.add(end[0]);
        }
        return kinds;
    }

    /**
     * Each of {@code count} ranks tells what it waited for, and that it heard no {@code silent}.
     */
    private static void assertReports(int silent, int count, ChildJvm mpirun) {
        List<String> told =
                mpirun.output().stream().filter(line -> line.startsWith("report ")).toList();
        assertEquals(count, told.size());
        for (String report : told) {
            assertTrue(report.matches(".* call=[1-9].*"), report);
            assertTrue(report.matches(".*Wait\\[[^]]*(from|source)=" + silent + ",.*"), report);
            assertTrue(
                    report.matches(".*Peer\\[rank=" + silent + ",[^]]* silentMs=[1-9].*"), report);
        }
    }

    private static void assertAllGone(Map<Integer, ProcessHandle> ranks) throws Exception {
        for (ProcessHandle rank : ranks.values()) {
            rank.onExit().get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        }
    }

    private static void stop(ProcessHandle rank) throws Exception {
        String pid = Long.toString(rank.pid());
        assertEquals(0, new ProcessBuilder("kill", "-STOP", pid).start().waitFor());
    }

    private static MpiRanks deadline(MpiRanks start, int ms) {
        return start.java("-Dweft.test.deadline.ms=" + ms);
    }

    @Test
    void aKilledRankIsNamedByThoseOnOtherHosts() throws Exception {
        MpiRanks start = MpiRanks.of(MpiFamily.OPEN_MPI, 3).perHost(1).outlivingEachOther();
        try (ChildJvm mpirun = deadline(start, 4000).start(ProcessRank.class, "hold", "2")) {
            Map<Integer, ProcessHandle> ranks = awaitRunning(mpirun, 3);
            ranks.get(2).destroyForcibly();
            List<String> ends = endsBy(2, 2, mpirun);
            assertTrue(
                    ends.contains("StallException") || ends.contains("PeerLostException"),
                    "the first to notice: " + ends);
            assertAllGone(ranks);
        }
    }

    /** Whom they name depends on who waits for whom just then, and gives up first. */
    @Test
    void aRankKilledAmongCallsEndsAllOthers() throws Exception {
        MpiRanks start = MpiRanks.of(MpiFamily.OPEN_MPI, 3).perHost(1).outlivingEachOther();
        try (ChildJvm mpirun =
                deadline(start, 4000).start(ProcessRank.class, "endless", "sequential")) {
            Map<Integer, ProcessHandle> ranks = awaitRunning(mpirun, 3);
            ranks.get(1).destroyForcibly();
            for (int i = 0; i < 2; i++) {
                String end = mpirun.awaitLine("ended ");
                assertTrue(end.matches("(Stall|PeerLost|PeerFailed)Exception [012] .*"), end);
            }
            assertAllGone(ranks);
        }
    }

    @Test
    void aKilledRankIsLostToItsHostMateAtOnce() throws Exception {
        MpiRanks start = MpiRanks.of(MpiFamily.OPEN_MPI, 4).perHost(2).outlivingEachOther();
        try (ChildJvm mpirun = deadline(start, 60_000).start(ProcessRank.class, "hold", "0")) {
            Map<Integer, ProcessHandle> ranks = awaitRunning(mpirun, 4);
            ranks.get(3).destroyForcibly();
            // Rank 2 sees the lock of its mate free; the others learn it from rank 2.
            List<String> ends = endsBy(3, 2, mpirun);
            assertTrue(ends.contains("PeerLostException"), ends.toString());
        }
    }

    @Test
    void aStoppedRankIsAStallForAllOthers() throws Exception {
        MpiRanks start = MpiRanks.of(MpiFamily.OPEN_MPI, 3).perHost(1).outlivingEachOther();
        try (ChildJvm mpirun = deadline(start, 4000).start(ProcessRank.class, "hold", "2")) {
            Map<Integer, ProcessHandle> ranks = awaitRunning(mpirun, 3);
            stop(ranks.get(2));
            List<String> ends = endsBy(2, 2, mpirun);
            assertTrue(ends.contains("StallException"), ends.toString());
            assertReports(2, 2, mpirun);
            ranks.remove(2).destroyForcibly();
            assertAllGone(ranks);
        }
    }

    @Test
    void aRankThatThrowsIsNamedByTheOthers() throws Exception {
        MpiRanks start = MpiRanks.of(MpiFamily.MPICH, 3).perHost(1);
        try (ChildJvm mpirun = start.start(ProcessRank.class, "throw", "1")) {
            Map<Integer, ProcessHandle> ranks = awaitRunning(mpirun, 3);
            assertEquals(List.of("PeerFailedException"), endsBy(1, 1, mpirun));
            assertNotEquals(0, mpirun.exitCode());
            String all = String.join("\n", mpirun.output());
            assertTrue(all.contains("rank 1 failed: the press broke"), all);
            assertAllGone(ranks);
        }
    }

    /** Its launcher ends all ranks when one dies, before they can say anything. */
    @Test
    void mpichEndsAllRanksWhenOneIsKilled() throws Exception {
        MpiRanks start = MpiRanks.of(MpiFamily.MPICH, 3).perHost(1);
        try (ChildJvm mpirun = start.start(ProcessRank.class, "endless", "ring")) {
            Map<Integer, ProcessHandle> ranks = awaitRunning(mpirun, 3);
            ranks.get(1).destroyForcibly();
            assertNotEquals(0, mpirun.exitCode());
            assertAllGone(ranks);
        }
    }

    @Test
    void directIsRefusedBetweenHosts() {
        MpiRanks start = MpiRanks.of(MpiFamily.MPICH, 2).perHost(1);
        try (ChildJvm mpirun = start.start(ProcessRank.class, "direct")) {
            assertNotEquals(0, mpirun.exitCode());
            String all = String.join("\n", mpirun.output());
            assertTrue(all.contains("IllegalArgumentException: direct"), all);
        }
    }
}
