package dev.weft.stress;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

/** What is a problem and what is as promised. */
class EndingTest {

    private static final RankEnd RIGHT = RankEnd.right(0, new Workload.Tally(3, 1, 100));

    private static RankEnd error(int rank, long afterMs) {
        return RankEnd.of(rank, RankEnd.How.ERROR, "StallException", 1, afterMs, "no progress");
    }

    private static RankEnd end(int rank, RankEnd.How how) {
        return RankEnd.of(rank, how, "Kind", -1, 0, "text");
    }

    private static List<String> problems(String words, boolean happened, RankEnd... ends) {
        return new Ending(Case.parse(words), happened, List.of(ends), List.of()).problems();
    }

    @Test
    void errorsInTimeAreAsPromised() {
        assertEquals(
                List.of(),
                problems(
                        "fault=kill rank=1 deadline=2000",
                        true,
                        RIGHT,
                        end(1, RankEnd.How.DIED),
                        error(2, 3000)));
    }

    @Test
    void lateErrorsAreNot() {
        assertEquals(
                List.of("rank 2: its error came after 3001 ms: no progress"),
                problems("fault=kill rank=1 deadline=2000", true, error(2, 3001)));
    }

    @Test
    void errorsWithoutAFaultAreNot() {
        assertEquals(
                List.of("rank 2: an error though nothing was lost: no progress"),
                problems("fault=duplicate deadline=2000", true, error(2, 1)));
    }

    @Test
    void aWrongResultIsAlwaysAProblem() {
        assertEquals(
                List.of("rank 1: WRONG RESULT: text"),
                problems("fault=kill rank=1", true, end(1, RankEnd.How.WRONG)));
    }

    @Test
    void hangsSilentDeathsAndUntypedErrorsAreProblemsButForTheVictim() {
        RankEnd.How[] hows = {RankEnd.How.HUNG, RankEnd.How.DIED, RankEnd.How.OTHER};
        for (RankEnd.How how : hows) {
            assertEquals(List.of(), problems("fault=freeze rank=1", true, end(1, how)));
            assertEquals(1, problems("fault=freeze rank=1", true, end(0, how)).size());
            assertEquals(1, problems("fault=freeze rank=1", false, end(1, how)).size());
        }
    }

    @Test
    void whatIsLeftBehindIsAProblem() {
        Ending ending =
                new Ending(Case.parse("fault=none"), false, List.of(RIGHT), List.of("a folder"));
        assertEquals(List.of("a folder"), ending.problems());
    }

    @Test
    void ranksAlikeAreToldTogether() {
        Ending ending =
                new Ending(
                        Case.parse("fault=kill rank=1"),
                        true,
                        List.of(error(0, 7), end(1, RankEnd.How.DIED), error(2, 9)),
                        List.of());
        assertEquals("2 Stall", ending.describe());
        assertEquals(9, ending.errorMs());
    }
}
