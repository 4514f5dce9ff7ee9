package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.console.ExitCode;
import dev.weft.cli.diagnosis.FailureDiagnosis;
import dev.weft.cli.diagnosis.RankFailure;
import dev.weft.cli.message.RankLines;
import dev.weft.fabric.PeerLostException;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

/** What the command makes of the lines that come through mpirun. */
class MpiRankMessagesTest {

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
        tell(0, new MpiRankMessages.Alive());
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
        assertEquals("rank 1 never started", culprit());
    }

    private Map<Integer, FailureDiagnosis.ProcessEnd> causes() {
        Map<Integer, FailureDiagnosis.ProcessEnd> processEnds = ranks.processEnds();
        processEnds.values().removeIf(processEnd -> !processEnd.cause());
        return processEnds;
    }

    @Test
    void aSignalToOneRankIsTheCauseAndThoseOfItsLauncherAreNot() {
        for (int rank = 0; rank < 3; rank++) {
            start(rank, "elsewhere");
        }
        tell(0, new MpiRankMessages.Signal("SIGTERM"));
        assertEquals(Map.of(), causes());
        tell(1, RankFailure.of(new PeerLostException(1, 0, "died", "a chunk")));
        assertEquals(
                "mpirun ended the ranks before the run was over: was it told to end?",
                ranks.commonEnd(ranks.processEnds()));
        tell(2, new MpiRankMessages.Signal("SIGINT"));
        assertEquals("rank 2 was ended by SIGINT", culprit());
        assertNull(ranks.commonEnd(ranks.processEnds()));
    }
}
