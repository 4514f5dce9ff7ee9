package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.diagnosis.FailureDiagnosis;
import dev.weft.cli.diagnosis.RankFailure;
import dev.weft.cli.message.RankLines;
import dev.weft.fabric.FabricException.PeerLostException;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** What the command makes of the lines that come through mpirun. */
class MpiRankMessagesTest {

    private static final String MPIRUN_ENDED =
            "mpirun ended the ranks before the run was over: was it told to end?";

    private final MpiRankMessages ranks = new MpiRankMessages(3);

    private void start(int rank, String system) {
        tell(rank, new RankStart(1L << 40, system, "753008641", "/tmp/a b/pid.7"));
    }

    private void tell(int rank, Record message) {
        for (String line : RankLines.of(rank, message)) {
            assertTrue(ranks.take("[1," + rank + "]<stderr>:" + line), line);
        }
    }

    private String culprit() {
        return new FailureDiagnosis(ranks.ends(), ranks.processEnds()).line().orElse("");
    }

    @Test
    void whatARankTellsAtItsStartIsReadBack() {
        start(2, "elsewhere");
        RankStart start = ranks.starts().getFirst();
        assertEquals("/tmp/a b/pid.7", start.session());
        assertTrue(start.process().isEmpty(), "a number of another system means nothing here");
        tell(0, RankStart.current());
        assertEquals(List.of(ProcessHandle.current()), ranks.processes());
    }

    @Test
    void otherLinesAreForPeople() {
        for (String line :
                List.of("weft: rank 1: no", "", "weft-rank 1 2", "weft-rank 1 Signal 0 1 y")) {
            assertFalse(ranks.take(line), line);
        }
        assertEquals(0, ranks.heard());
        tell(0, new MpiRankMessages.Alive(true));
        assertEquals(1, ranks.heard());
    }

    @Test
    void theFirstRanksCodeCountsWhateverHappensAfterwards() {
        assertEquals(OptionalInt.empty(), ranks.exitCode());
        tell(0, new MpiRankMessages.Exit(0));
        tell(0, new MpiRankMessages.Signal("SIGTERM"));
        assertEquals(OptionalInt.of(0), ranks.exitCode());
        tell(0, new MpiRankMessages.Exit(2));
        assertEquals(OptionalInt.of(ExitCode.USAGE), ranks.exitCode());
    }

    @Test
    void aRankThatNeverStartedIsTheCauseIfOthersDid() {
        assertEquals(Map.of(), causes(), "mpirun may be to blame");
        start(0, "elsewhere");
        start(2, "elsewhere");
        assertEquals("rank 1 never came up", culprit());
    }

    private Map<Integer, FailureDiagnosis.ProcessEnd> causes() {
        Map<Integer, FailureDiagnosis.ProcessEnd> processEnds = ranks.processEnds();
        processEnds.values().removeIf(processEnd -> !processEnd.cause());
        return processEnds;
    }

    @Test
    void aRankThatMpirunEndedWhileItStartedIsNotTheCause() {
        start(0, "elsewhere");
        start(2, "elsewhere");
        tell(0, new MpiRankMessages.Signal("SIGTERM"));
        assertEquals(Map.of(), causes());
        assertEquals(MPIRUN_ENDED, ranks.commonEnd(ranks.processEnds()));
    }

    /** The first rank notices the end of its input before it has met the others. */
    @Test
    void aRankWhoseInputEndsIsNotTheCause() {
        start(0, "elsewhere");
        tell(0, RankFailure.of(new IllegalStateException(MpiRankMessages.STARTER_GONE)));
        assertEquals(MPIRUN_ENDED, ranks.commonEnd(ranks.processEnds()));
    }

    @Test
    void aRankThatHasNotReportedIsLookedForAmongTheProcesses() throws Exception {
        ProcessBuilder builder = new ProcessBuilder("sleep", "1000");
        builder.environment().put("PMI_RANK", "1");
        Process rank = builder.start();
        try {
            start(0, "elsewhere");
            // A child has its parent's environment until it becomes the program.
            while (!end(rank).words().equals("is still starting")) {
                assertTrue(rank.isAlive());
                Thread.onSpinWait();
            }
            ChildProcess.signal("STOP", rank.pid());
            while (!end(rank).words().equals("is stopped")) {
                assertTrue(rank.isAlive());
                Thread.onSpinWait();
            }
            assertFalse(end(rank).cause());
        } finally {
            rank.destroyForcibly().waitFor();
        }
        assertEquals("never came up", end(rank).words());
    }

    private FailureDiagnosis.ProcessEnd end(Process rank) {
        ranks.look(Stream.of(rank.toHandle()));
        return ranks.processEnds().get(1);
    }

    @Test
    void aSignalToOneRankIsTheCauseAndThoseOfItsLauncherAreNot() {
        for (int rank = 0; rank < 3; rank++) {
            start(rank, "elsewhere");
        }
        tell(0, new MpiRankMessages.Signal("SIGTERM"));
        assertEquals(Map.of(), causes());
        tell(1, RankFailure.of(new PeerLostException(1, 0, "died", "a chunk")));
        assertEquals(MPIRUN_ENDED, ranks.commonEnd(ranks.processEnds()));
        tell(2, new MpiRankMessages.Signal("SIGINT"));
        assertEquals("rank 2 was ended by SIGINT", culprit());
        assertNull(ranks.commonEnd(ranks.processEnds()));
    }
}
