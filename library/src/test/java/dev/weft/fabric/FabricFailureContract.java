package dev.weft.fabric;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.FabricException.CorruptSignalException;
import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.FabricException.PeerLostException;
import dev.weft.fabric.FabricException.StallException;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How waits end when a peer fails, leaves or stalls, whatever the fabric. */
abstract class FabricFailureContract {

    private static final Duration LONG = Duration.ofSeconds(60);

    private static final Duration SHORT = Duration.ofMillis(700);

    abstract RankRunner runner();

    private RankRunner.Outcomes run(int ranks, Ranks.Body body) {
        return runner().run(ranks, LONG, body);
    }

    /** Rank 2 of 3 stays away from a barrier. */
    private RankRunner.Outcomes runStalledBarrier() {
        CountDownLatch stalled = new CountDownLatch(2);
        return runner().run(
                        3,
                        SHORT,
                        fabric -> {
                            if (fabric.rank() == 2) {
                                stalled.await();
                                return;
                            }
                            try {
                                fabric.barrier();
                            } finally {
                                stalled.countDown();
                            }
                        });
    }

    /** Whoever throws is named by all others, also by those who learn of it from a third rank. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 3})
    void aRankThatThrowsEndsAllOthersWithItsNameAndMessage(int culprit) {
        IllegalStateException cause = new IllegalStateException("the press broke");
        RankRunner.Outcomes outcomes =
                run(
                        4,
                        fabric -> {
                            fabric.barrier();
                            if (fabric.rank() == culprit) {
                                throw cause;
                            }
                            fabric.barrier();
                        });
        for (int r = 0; r < 4; r++) {
            if (r == culprit) {
                assertSame(cause, outcomes.of(r));
                continue;
            }
            PeerFailedException failure = outcomes.of(r, PeerFailedException.class);
            assertEquals(r, failure.rank());
            assertEquals(culprit, failure.peer());
            assertEquals("the press broke", failure.reason());
            assertEquals(
                    "rank " + r + ": rank " + culprit + " failed: the press broke",
                    failure.getMessage());
        }
    }

    @Test
    void aFailureOfAnEarlierStageIsPassedOnUnderItsOwnName() {
        RankRunner.Outcomes outcomes =
                run(
                        3,
                        fabric -> {
                            try (Region region = fabric.allocate(64)) {
                                if (fabric.rank() == 2) {
                                    throw new ArithmeticException();
                                }
                                // Rank 0 waits for rank 1, which waits for rank 2.
                                Awaited what = Awaited.of("a link", fabric.rank() + 1);
                                fabric.await(region, fabric.rank(), 0, 1, what);
                            }
                        });
        assertEquals(2, outcomes.of(0, PeerFailedException.class).peer());
        assertEquals(2, outcomes.of(1, PeerFailedException.class).peer());
        assertEquals(
                "java.lang.ArithmeticException",
                outcomes.of(0, PeerFailedException.class).reason(),
                "without a message, its kind");
    }

    @Test
    void aMessageTooLongForSharedMemoryIsCut() {
        String message = "\u00e9 ".repeat(5000);
        RankRunner.Outcomes outcomes =
                run(
                        2,
                        fabric -> {
                            if (fabric.rank() == 0) {
                                throw new IllegalArgumentException(message);
                            }
                            fabric.barrier();
                        });
        String reason = outcomes.of(1, PeerFailedException.class).reason();
        assertTrue(reason.length() > 100 && message.startsWith(reason.substring(0, 100)), reason);
    }

    @Test
    void failReportedByAnyThreadEndsThePeersAndTheRanksOwnWaits() {
        RankRunner.Outcomes outcomes =
                run(
                        2,
                        fabric -> {
                            if (fabric.rank() == 1) {
                                ThreadGroupRun threads = new ThreadGroupRun();
                                threads.start(
                                        () -> {
                                            fabric.fail(new Exception("first"));
                                            fabric.fail(new Exception("second"));
                                        });
                                threads.join();
                            }
                            try (Region region = fabric.allocate(64)) {
                                Awaited what = Awaited.of("nothing", 1 - fabric.rank());
                                fabric.await(region, 0, 0, 1, what);
                            }
                        });
        for (int r = 0; r < 2; r++) {
            PeerFailedException failure = outcomes.of(r, PeerFailedException.class);
            assertEquals(1, failure.peer());
            assertEquals("first", failure.reason(), "the first cause stays");
            assertEquals(r, failure.report().orElseThrow().rank());
        }
    }

    @Test
    void aRankThatLeavesEarlyIsNamed() {
        RankRunner.Outcomes outcomes =
                run(
                        3,
                        fabric -> {
                            Region region = fabric.allocate(64);
                            if (fabric.rank() != 1) {
                                fabric.await(region, 0, 0, 9, Awaited.chunk(1, 1, 4));
                            }
                        });
        assertNull(outcomes.of(1));
        int lost = 0;
        for (int r : new int[] {0, 2}) {
            FabricException failure = outcomes.of(r, FabricException.class);
            assertEquals(1, failure.peer());
            if (failure instanceof PeerLostException) {
                lost++;
                assertEquals(
                        "rank "
                                + r
                                + ": rank 1 left while chunk 4 of rank 1 (number 9) from"
                                + " rank 1 was awaited",
                        failure.getMessage());
            }
        }
        assertTrue(lost > 0, "at least the first one to notice says that the peer left");
    }

    @Test
    void whatARankSignalledBeforeItLeftStillArrives() {
        run(
                        2,
                        fabric -> {
                            Region region = fabric.allocate(64);
                            if (fabric.rank() == 0) {
                                fabric.await(region, 1, 0, 1, Awaited.of("the last word", 1));
                                fabric.await(region, 1, 4, 1, Awaited.of("the last word", 1));
                            } else {
                                fabric.signal(region, 1, 0, 1);
                                fabric.signal(region, 1, 4, 1);
                            }
                            region.close();
                        })
                .assertNoFailure();
    }

    @Test
    void aStallNamesRankSourceChunkAndDeadline() {
        CountDownLatch stalled = new CountDownLatch(1);
        RankRunner.Outcomes outcomes =
                runner().run(
                                3,
                                SHORT,
                                fabric -> {
                                    try (Region region = fabric.allocate(64)) {
                                        if (fabric.rank() == 0) {
                                            Awaited what = Awaited.chunk(1, 2, 7);
                                            fabric.await(region, 0, 0, 5, what);
                                        }
                                        stalled.await();
                                    } finally {
                                        stalled.countDown();
                                    }
                                });
        StallException stall = outcomes.of(0, StallException.class);
        assertEquals(0, stall.rank());
        assertEquals(1, stall.peer());
        assertEquals(2, stall.source());
        assertEquals(7, stall.chunk());
        assertEquals(
                "rank 0: no progress of any peer for 700 ms while chunk 7 of rank 2 (number 5) from"
                        + " rank 1 was awaited",
                stall.getMessage());
    }

    @Test
    void aStallInACollectiveCallNamesTheMissingRank() {
        RankRunner.Outcomes outcomes = runStalledBarrier();
        assertEquals(2, outcomes.of(0, FabricException.class).peer());
        assertEquals(2, outcomes.of(1, FabricException.class).peer());
    }

    @Test
    void partsNameFailedRanksByTheWorld() {
        RankRunner.Outcomes outcomes =
                run(
                        4,
                        fabric -> {
                            Transport half = fabric.split(2);
                            if (fabric.rank() == 3) {
                                throw new IllegalStateException("no more yarn");
                            }
                            half.barrier();
                            if (fabric.rank() < 2) {
                                half.exchange(1);
                            }
                        });
        assertNull(outcomes.of(0), "the other part goes on");
        assertNull(outcomes.of(1));
        PeerFailedException failure = outcomes.of(2, PeerFailedException.class);
        assertEquals(2, failure.rank());
        assertEquals(3, failure.peer());
    }

    /** Also memory that was never released, because its ranks failed before they could. */
    @Test
    void nothingStaysAllocatedAfterAFailedRun() {
        Queue<MemorySegment> held = new ConcurrentLinkedQueue<>();
        RankRunner.Outcomes outcomes =
                run(
                        3,
                        fabric -> {
                            Region region = fabric.allocate(4096);
                            held.add(region.part(0));
                            fabric.barrier();
                            if (fabric.rank() == 1) {
                                throw new IllegalStateException("before the next one");
                            }
                            fabric.allocate(4096);
                        });
        assertNotNull(outcomes.of(0));
        assertEquals(3, held.size());
        for (MemorySegment part : held) {
            assertFalse(part.scope().isAlive());
        }
    }

    /** A word that its writer cannot have written is no signal, however the waiter looks at it. */
    @ParameterizedTest
    @ValueSource(ints = {2, 1 << 20, Integer.MAX_VALUE})
    void aCorruptSignalIsAnErrorAndNotASignal(int ahead) {
        int value = Integer.MAX_VALUE - 1;
        Awaited what = Awaited.chunk(1, 1, 3).within(1);
        RankRunner.Outcomes outcomes =
                run(
                        2,
                        fabric -> {
                            Region region = fabric.allocate(64);
                            if (fabric.rank() == 1) {
                                fabric.signal(region, 0, 0, value + ahead);
                            }
                            fabric.barrier();
                            if (fabric.rank() == 0) {
                                assertTrue(fabric.reached(region, 0, 0, value));
                                assertFalse(fabric.reached(region, 0, 0, value, what));
                                fabric.await(region, 0, 0, value, what);
                            }
                            fabric.barrier();
                        });
        CorruptSignalException failure = outcomes.of(0, CorruptSignalException.class);
        assertEquals(0, failure.rank());
        assertEquals(1, failure.peer());
        assertEquals(1, failure.source());
        assertEquals(3, failure.chunk());
        assertEquals(value + ahead, failure.seen());
        assertEquals(1, failure.getMessage().lines().count());
        assertTrue(
                failure.getMessage().contains("holds " + (value + ahead) + ": expected " + value),
                failure.getMessage());
        assertEquals(1, outcomes.of(1, PeerFailedException.class).peer());
    }

    /** One that comes while the waiter sleeps is noticed too. */
    @Test
    void aCorruptSignalEndsAWaitThatBlocks() {
        CountDownLatch waits = new CountDownLatch(1);
        RankRunner.Outcomes outcomes =
                run(
                        2,
                        fabric -> {
                            try (Region region = fabric.allocate(64)) {
                                if (fabric.rank() == 0) {
                                    waits.countDown();
                                    Awaited what = Awaited.of("a word", 1).within(0);
                                    fabric.await(region, 0, 0, 5, what);
                                } else {
                                    waits.await();
                                    fabric.signal(region, 0, 0, 6);
                                    fabric.barrier();
                                }
                            }
                        });
        assertEquals(6, outcomes.of(0, CorruptSignalException.class).seen());
    }

    @Test
    void aSignalWithinTheLeadIsTaken() {
        run(
                        2,
                        fabric -> {
                            Region region = fabric.allocate(64);
                            fabric.publish(region, 0, 7);
                            fabric.barrier();
                            int peer = 1 - fabric.rank();
                            Awaited what = Awaited.of("a word", peer);
                            fabric.await(region, peer, 0, 7, what.within(0));
                            fabric.await(region, peer, 0, 5, what.within(2));
                            fabric.await(region, peer, 0, 7 - Integer.MAX_VALUE, what);
                            assertTrue(fabric.reached(region, peer, 0, 5, what.within(2)));
                            assertFalse(fabric.reached(region, peer, 0, 5, what.within(1)));
                            assertFalse(fabric.reached(region, peer, 0, 8, what));
                            fabric.barrier();
                            region.close();
                        })
                .assertNoFailure();
    }

    /** Every rank's error says what that rank waited for, and what it knows of the others. */
    @Test
    void anErrorTellsTheSituationOfItsRank() {
        RankRunner.Outcomes outcomes = runStalledBarrier();
        for (int r = 0; r < 2; r++) {
            FailureReport report = outcomes.of(r, FabricException.class).report().orElseThrow();
            assertEquals(r, report.rank());
            assertEquals("w", report.operator(), "whose collective call");
            FailureReport.Wait wait = report.waits().getFirst();
            assertEquals(Awaited.COLLECTIVE, wait.what());
            assertEquals(2, wait.from());
            assertTrue(wait.number() > 0, report.table());
            assertEquals(2, report.peers().size());
            FailureReport.Peer silent = report.peers().getLast();
            assertEquals(2, silent.rank());
            assertEquals(FailureReport.State.PRESENT, silent.state());
            assertTrue(silent.idleMs() >= 0, "somebody looked");
        }
    }
}
