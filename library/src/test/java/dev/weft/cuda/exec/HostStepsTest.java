package dev.weft.cuda.exec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.FabricException;
import dev.weft.fabric.FabricException.CorruptSignalException;
import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Region;
import dev.weft.plan.Shards;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class HostStepsTest {

    private static final Shards ROWS = Shards.even(8, 4);

    @Test
    void nobodyPassesACallThatSomeoneHasNotAnnounced() {
        AtomicInteger announced = new AtomicInteger();
        AtomicInteger queued = new AtomicInteger();
        Ranks.run(
                4,
                Duration.ofSeconds(10),
                fabric -> {
                    try (Region region = fabric.allocate(HostSteps.BYTES)) {
                        HostSteps steps = new HostSteps(fabric, region);
                        for (int call = 1; call <= 50; call++) {
                            announced.incrementAndGet();
                            steps.announce(call, ROWS);
                            assertTrue(announced.get() >= 4 * call, "call " + call);
                            queued.incrementAndGet();
                            steps.queued(call);
                            steps.awaitQueued(call);
                            assertTrue(queued.get() >= 4 * call, "call " + call);
                        }
                        assertTrue(steps.awaitDrained(false));
                        assertTrue(steps.awaitUnmapped());
                    }
                });
    }

    @Test
    void whoDoesNotComeIsNamedAndNotAwaitedForEver() {
        Ranks.run(
                2,
                Duration.ofMillis(300),
                fabric -> {
                    try (Region region = fabric.allocate(HostSteps.BYTES)) {
                        HostSteps steps = new HostSteps(fabric, region);
                        if (fabric.rank() == 0) {
                            FabricException end =
                                    assertThrows(
                                            FabricException.class, () -> steps.announce(1, ROWS));
                            assertEquals(1, end.peer());
                            assertFalse(steps.awaitDrained(true));
                        }
                    }
                });
    }

    /** Who has left says nothing any more, so its hour is not waited for. */
    @Test
    @Timeout(30)
    void whoHasLeftIsNotAwaited() {
        Ranks.run(
                2,
                Duration.ofHours(1),
                fabric -> {
                    try (Region region = fabric.allocate(HostSteps.BYTES)) {
                        HostSteps steps = new HostSteps(fabric, region);
                        if (fabric.rank() == 0) {
                            assertFalse(steps.awaitDrained(false));
                        }
                    }
                });
    }

    @Test
    @Timeout(30)
    void aFailureIsNoticedWithoutAWordToWaitFor() {
        Ranks.run(
                2,
                Duration.ofHours(1),
                fabric -> {
                    if (fabric.rank() == 1) {
                        fabric.fail(new IllegalStateException("the press broke"));
                        return;
                    }
                    PeerFailedException end =
                            assertThrows(
                                    PeerFailedException.class,
                                    () -> {
                                        while (true) {
                                            fabric.checkPeers();
                                            Thread.onSpinWait();
                                        }
                                    });
                    assertEquals(1, end.peer());
                });
    }

    /** No call is so far ahead that its number could be a signal. */
    @Test
    void aCorruptWordIsNotTakenForACall() {
        Ranks.run(
                2,
                Duration.ofSeconds(10),
                fabric -> {
                    try (Region region = fabric.allocate(HostSteps.BYTES)) {
                        HostSteps steps = new HostSteps(fabric, region);
                        if (fabric.rank() == 1) {
                            fabric.publish(region, 0, 1 << 20);
                            fabric.barrier();
                        } else {
                            fabric.barrier();
                            assertThrows(
                                    CorruptSignalException.class, () -> steps.announce(1, ROWS));
                        }
                    }
                });
    }
}
