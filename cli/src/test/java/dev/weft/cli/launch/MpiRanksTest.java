package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.console.ExitCode;
import dev.weft.cli.diagnosis.Culprit;
import dev.weft.cli.diagnosis.EndPieces;
import dev.weft.cli.diagnosis.RankEnd;
import dev.weft.fabric.PeerLostException;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

/** What the command makes of the lines that come through mpirun. */
class MpiRanksTest {

    private final MpiRanks ranks = new MpiRanks(3);

    private void start(int rank, String system) {
        assertTrue(ranks.take("[1," + rank + "]<stderr>:" + line(rank, system)));
    }

    private static String line(int rank, String system) {
        return new RankStart(rank, 1L << 40, system, "753008641", "/tmp/a b/pid.7").line();
    }

    private String culprit() {
        return new Culprit(ranks.ends(), ranks.fates()).line().orElse("");
    }

    @Test
    void whatARankTellsAtItsStartIsReadBack() {
        start(2, "elsewhere");
        RankStart start = ranks.starts().getFirst();
        assertEquals(line(2, "elsewhere"), start.line());
        assertEquals("/tmp/a b/pid.7", start.session());
        assertTrue(start.process().isEmpty(), "a number of another system means nothing here");
        RankStart here = RankStart.of(RankStart.current().line()).orElseThrow();
        assertEquals(ProcessHandle.current(), here.process().orElseThrow());
    }

    @Test
    void otherLinesAreForPeople() {
        for (String line : List.of("weft: rank 1: no", "", "weft-rank 1 2", "weft-signal x y")) {
            assertFalse(ranks.take(line), line);
        }
        assertEquals(0, ranks.heard());
        assertTrue(ranks.take(MpiRanks.ALIVE));
        assertEquals(1, ranks.heard());
    }

    @Test
    void theFirstRanksCodeCountsWhateverHappensAfterwards() {
        assertEquals(OptionalInt.empty(), ranks.exitCode());
        assertTrue(ranks.take(MpiRanks.exit(0)));
        assertTrue(ranks.take(MpiRanks.signal(0, "SIGTERM")));
        assertEquals(OptionalInt.of(0), ranks.exitCode());
        assertTrue(ranks.take(MpiRanks.exit(2)));
        assertEquals(OptionalInt.of(ExitCode.USAGE), ranks.exitCode());
    }

    @Test
    void aRankThatNeverStartedIsTheCauseIfOthersDid() {
        assertEquals(Map.of(), causes(), "mpirun may be to blame");
        start(0, "elsewhere");
        start(2, "elsewhere");
        assertEquals("rank 1 never started", culprit());
    }

    private Map<Integer, Culprit.Fate> causes() {
        Map<Integer, Culprit.Fate> fates = ranks.fates();
        fates.values().removeIf(fate -> !fate.cause());
        return fates;
    }

    @Test
    void aSignalToOneRankIsTheCauseAndThoseOfItsLauncherAreNot() {
        for (int rank = 0; rank < 3; rank++) {
            start(rank, "elsewhere");
        }
        ranks.take(MpiRanks.signal(0, "SIGTERM"));
        assertEquals(Map.of(), causes());
        RankEnd consequence = RankEnd.of(new PeerLostException(1, 0, "died", "a chunk"));
        EndPieces.of(consequence).forEach(ranks::take);
        assertEquals(
                "mpirun ended the ranks before the run was over: was it told to end?",
                ranks.commonEnd(ranks.fates()));
        ranks.take(MpiRanks.signal(2, "SIGINT"));
        assertEquals("rank 2 was ended by SIGINT", culprit());
        assertNull(ranks.commonEnd(ranks.fates()));
    }
}
