package dev.weft.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.exec.HostSteps;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Region;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class HostStepsTest {

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
                            steps.announce(call);
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
                                    assertThrows(FabricException.class, () -> steps.announce(1));
                            assertEquals(1, end.peer());
                            assertFalse(steps.awaitDrained(true));
                        }
                    }
                });
    }
}
