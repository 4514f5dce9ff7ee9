package dev.weft.cli.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.FailureReport;
import dev.weft.fabric.FailureReport.Peer;
import dev.weft.fabric.FailureReport.Run;
import dev.weft.fabric.FailureReport.Sent;
import dev.weft.fabric.FailureReport.State;
import dev.weft.fabric.FailureReport.Wait;
import dev.weft.fabric.transport.Awaited;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Whom the merged ends of all ranks point at. */
class FailureDiagnosisTest {

    private static final int CALL = 7;
    private static final long DEADLINE_MS = 700;

    /** A rank in call 7 of operator {@code w-1} unless told otherwise. */
    private static final class Rank {
        private final int rank;
        private final List<Wait> waits = new ArrayList<>();
        private final List<Run> runs = new ArrayList<>();
        private final List<Peer> peers = new ArrayList<>();
        private RankFailure.Reason reason = RankFailure.Reason.STALL;
        private String operator = "w-1";
        private int call = CALL;
        private long waitedMs = DEADLINE_MS;

        Rank(int rank) {
            this.rank = rank;
        }

        Rank reason(RankFailure.Reason of) {
            reason = of;
            return this;
        }

        Rank in(String other, int ofCall) {
            operator = other;
            call = ofCall;
            return this;
        }

        /** Of the waits that follow. */
        Rank waited(long ms) {
            waitedMs = ms;
            return this;
        }

        Rank forChunk(int from, int source, int chunk) {
            waits.add(new Wait("compute-0", "chunk", from, source, chunk, call, waitedMs));
            return this;
        }

        Rank forWhat(String what, int from, int number) {
            waits.add(new Wait("main", what, from, -1, -1, number, waitedMs));
            return this;
        }

        Rank sent(int to, int source, int first, int last) {
            return sent("chunk", to, source, first, last);
        }

        Rank sent(String what, int to, int source, int first, int last) {
            runs.add(new Run(what, rank, to, source, first, last));
            return this;
        }

        /** Which sums of a chunk: {@code what} as in {@link Awaited}. */
        Rank forSums(String what, int from, int source, int chunk) {
            waits.add(new Wait("lane-1", what, from, source, chunk, call, waitedMs));
            return this;
        }

        Rank knows(int peer, State state) {
            peers.add(new Peer(peer, state, CALL, 10, -1));
            return this;
        }

        RankFailure end() {
            List<Sent> sent = List.of(new Sent("lane-0", runs.size(), 9, null, runs));
            FailureReport report =
                    new FailureReport(rank, operator, call, waits, List.of(), sent, peers);
            return new RankFailure(rank, reason, "rank " + rank + ": ended", Optional.of(report));
        }
    }

    private static Rank rank(int rank) {
        return new Rank(rank);
    }

    private static RankFailure own(int rank, String message) {
        return new RankFailure(rank, RankFailure.Reason.OWN, message, Optional.empty());
    }

    private static String line(
            Map<Integer, FailureDiagnosis.ProcessEnd> processEnds, RankFailure... ends) {
        return new FailureDiagnosis(List.of(ends), processEnds).line().orElse("");
    }

    private static String line(RankFailure... ends) {
        return line(Map.of(), ends);
    }

    @Test
    void aKilledRankComesFirst() {
        assertEquals(
                "rank 1 was ended by signal 9; rank 0 waits for it (chunk 2 of rank 1 (number 7)"
                        + " from rank 1)",
                line(
                        Map.of(1, new FailureDiagnosis.ProcessEnd(true, "was ended by signal 9")),
                        rank(0).reason(RankFailure.Reason.LOST).forChunk(1, 1, 2).end(),
                        own(2, "something else")));
    }

    @Test
    void aRankThatEndsWithoutAWordIsQuotedByItsPeers() {
        assertEquals(
                "rank 1 failed with exit code 1; rank 0: ended",
                line(
                        Map.of(1, new FailureDiagnosis.ProcessEnd(true, "failed with exit code 1")),
                        rank(0).reason(RankFailure.Reason.PEER_FAILED).forChunk(2, 2, 2).end()));
    }

    @Test
    void aRankThatFailedByItselfIsTheCause() {
        assertEquals(
                "rank 1 failed: the press broke",
                line(
                        rank(0).reason(RankFailure.Reason.PEER_FAILED).forChunk(2, 1, 0).end(),
                        own(1, "the press broke"),
                        rank(2).reason(RankFailure.Reason.PEER_FAILED).forChunk(1, 1, 0).end()));
        assertEquals("no more yarn", line(own(-1, "no more yarn")), "a thread's rank is unknown");
    }

    @Test
    void aCorruptSignalIsTheCause() {
        assertEquals(
                "rank 2: ended",
                line(
                        rank(0).reason(RankFailure.Reason.PEER_FAILED).forChunk(2, 1, 0).end(),
                        rank(2).reason(RankFailure.Reason.CORRUPT)
                                .waited(0)
                                .forChunk(1, 1, 0)
                                .end()));
    }

    @Test
    void aRankThatOthersKnowToBeDead() {
        assertEquals(
                "rank 3 died; ranks 0 and 1 wait for it (chunk 0 of rank 3 (number 7) from rank 3)",
                line(
                        rank(0).reason(RankFailure.Reason.LOST)
                                .forChunk(3, 3, 0)
                                .knows(1, State.FAILED)
                                .knows(3, State.DEAD)
                                .end(),
                        rank(1).reason(RankFailure.Reason.PEER_FAILED).forChunk(3, 3, 1).end()));
    }

    @Test
    void aRankThatLeftIsToBlameIfItIsWaitedFor() {
        Rank lost = rank(0).reason(RankFailure.Reason.LOST).forWhat(Awaited.START, 2, CALL);
        assertTrue(
                line(lost.knows(1, State.LEFT).knows(2, State.LEFT).end())
                        .startsWith(
                                "rank 2 left before it had signalled all; rank 0 waits for it"));
    }

    /** 0 waits for 1, which waits for 2, which waits for 3, of which nothing is heard. */
    @Test
    void theEndOfAChainIsTheCulprit() {
        RankFailure[] chain = {
            rank(0).forChunk(1, 3, 2).end(),
            rank(1).reason(RankFailure.Reason.PEER_FAILED).forChunk(2, 3, 2).end(),
            rank(2).reason(RankFailure.Reason.PEER_FAILED).waited(650).forChunk(3, 3, 2).end()
        };
        String expected = "; rank 2 waits for it (chunk 2 of rank 3 (number 7) from rank 3)";
        assertEquals("rank 3 hangs: it gave no sign of life" + expected, line(chain));
        assertEquals(
                "rank 3 hangs: it gave no sign of life and is stopped" + expected,
                line(Map.of(3, new FailureDiagnosis.ProcessEnd(false, "is stopped")), chain));
    }

    @Test
    void aRankThatCameLateIsTheCulpritThoughItWaitsInTheEnd() {
        assertTrue(
                line(
                                rank(0).forWhat(Awaited.COLLECTIVE, 2, 9).end(),
                                rank(1).reason(RankFailure.Reason.PEER_FAILED)
                                        .forWhat(Awaited.COLLECTIVE, 2, 9)
                                        .end(),
                                rank(2).reason(RankFailure.Reason.PEER_FAILED)
                                        .waited(3)
                                        .forWhat(Awaited.COLLECTIVE, 0, 9)
                                        .end())
                        .startsWith("rank 2 was late: "));
    }

    /** It may have waited long before, while others still worked: the deadline counts. */
    @Test
    void oneThatWaitedLongestIsNoMeasureForTheOthers() {
        assertTrue(
                line(
                                rank(0).waited(10 * DEADLINE_MS).forChunk(1, 1, 0).end(),
                                rank(1).forChunk(2, 2, 0).end())
                        .startsWith("rank 2 hangs"));
    }

    @Test
    void whatOneSentAndTheOtherNeverGotWasLost() {
        assertEquals(
                "a signal was lost: rank 1 has sent chunk 3 of rank 1 in call 7, rank 2 never got"
                        + " it",
                line(
                        rank(0).forChunk(2, 1, 3).end(),
                        rank(1).sent(2, 1, 0, 5).forChunk(0, 0, 9).end(),
                        rank(2).forChunk(1, 1, 3).end()));
    }

    /** A chain: rank 0 has sent sums so far of the chunk, and waits for whole ones itself. */
    @Test
    void otherSumsOfTheSameChunkAreNotWhatWasLost() {
        assertEquals(
                "rank 2 hangs: it gave no sign of life; rank 0 waits for it (whole sums of chunk 0"
                        + " of rank 0 (number 7) from rank 2)",
                line(
                        rank(0).sent(Awaited.PARTIAL_SUMS, 1, 0, 0, 5)
                                .forSums(Awaited.WHOLE_SUMS, 2, 0, 0)
                                .end(),
                        rank(1).forSums(Awaited.WHOLE_SUMS, 0, 0, 0).end()));
    }

    /** Its own threads' sums are no reason to blame the owner of the rows. */
    @Test
    void whoWaitsForItsOwnSumsBlamesNobody() {
        assertEquals(
                "rank 1 was late: it came to wait only when others had given up; rank 0 waits for"
                        + " it (own sums of chunk 3 of rank 0 (number 7) from rank 1)",
                line(
                        rank(0).forSums(Awaited.PEER_SUMS, 1, 0, 3).end(),
                        rank(1).forSums(Awaited.OWN_THREAD, 1, 2, 3).end()));
    }

    @Test
    void whoIsInTheNextCallHasSentAllOfThisOne() {
        assertTrue(
                line(
                                rank(1).in("w-1", CALL + 1)
                                        .forWhat(Awaited.START, 2, CALL + 1)
                                        .end(),
                                rank(2).forChunk(1, 0, 3).end())
                        .startsWith(
                                "a signal was lost: rank 1 has sent chunk 3 of rank 0 in call"));
    }

    @Test
    void whatWasNotSentOrNotHereOrByALateOneIsNotLost() {
        RankFailure waiter = rank(2).forChunk(1, 1, 3).end();
        RankFailure before = rank(1).sent(2, 1, 0, 2).sent(0, 1, 0, 5).forChunk(0, 0, 0).end();
        assertTrue(line(before, waiter).startsWith("rank 0 hangs"), "not yet sent to rank 2");
        RankFailure elsewhere = rank(1).in("w-2", 90).sent(2, 1, 0, 5).forChunk(0, 0, 0).end();
        assertTrue(line(elsewhere, waiter).startsWith("rank 0 hangs"), "another operator");
        RankFailure late =
                rank(1).reason(RankFailure.Reason.PEER_FAILED)
                        .waited(1)
                        .sent(2, 1, 0, 5)
                        .forChunk(0, 0, 0)
                        .end();
        assertTrue(line(late, waiter).startsWith("rank 1 was late"), "sent when it was too late");
    }

    @Test
    void aLostStartAndALostEntry() {
        assertEquals(
                "a signal was lost: rank 1 has started call 7, rank 0 never got it",
                line(
                        rank(0).forWhat(Awaited.SHARD, 1, CALL).end(),
                        rank(1).forWhat(Awaited.SHARD, 0, CALL + 1).end()));
        assertEquals(
                "a signal was lost: rank 1 has entered collective call 4, rank 0 never got it",
                line(
                        rank(0).in("w", -1).forWhat(Awaited.COLLECTIVE, 1, 4).end(),
                        rank(1).in("w", -1).forWhat(Awaited.COLLECTIVE, 0, 5).end()));
    }

    /** The world and each part of it count their own: rank 0 is in one, rank 1 in another. */
    @Test
    void collectiveCallsOfAnotherGroupTellNothing() {
        String line =
                line(
                        rank(0).in("w", -1).forWhat(Awaited.COLLECTIVE, 1, 4).end(),
                        rank(1).in("w.0-0", -1).forWhat(Awaited.COLLECTIVE, 2, 5).end());
        assertTrue(line.startsWith("rank 2 hangs"), line);
    }

    @Test
    void ranksThatWaitForEachOtherAreACircle() {
        assertEquals(
                "ranks wait for each other in a circle: 1 for 2 for 3 for 1: no rank is the cause"
                        + " by itself",
                line(
                        rank(0).forChunk(1, 1, 0).end(),
                        rank(1).forChunk(2, 2, 0).end(),
                        rank(2).forChunk(3, 3, 0).end(),
                        rank(3).forChunk(1, 1, 0).end()));
    }

    @Test
    void severalCandidatesAreListed() {
        assertEquals(
                "ranks 2, 3 and 5 are waited for and wait for nobody: any of them may be the cause",
                line(
                        rank(0).forChunk(3, 3, 0).forChunk(2, 2, 1).end(),
                        rank(1).forChunk(5, 5, 0).end()));
    }

    @Test
    void whoWaitsForItsOwnLaneWaitsForWhomTheLaneWaitsFor() {
        assertTrue(
                line(rank(0).forChunk(0, 1, 4).forWhat(Awaited.SHARD, 2, CALL).end())
                        .startsWith("rank 2 hangs"));
        assertEquals(
                "rank 1 hangs: it gave no sign of life; rank 0 waits for it (chunk 4 of rank 1"
                        + " (number 7) from rank 0)",
                line(rank(0).forChunk(0, 1, 4).end()));
    }

    @Test
    void nobodyCanTell() {
        assertEquals("", line());
        assertEquals("", line(rank(0).end()));
    }
}
