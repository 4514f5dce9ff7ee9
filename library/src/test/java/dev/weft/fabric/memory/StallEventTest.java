package dev.weft.fabric.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.World;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import java.nio.file.Path;
import java.util.List;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StallEventTest {

    @TempDir Path temporary;

    @Test
    void aWaitThatBlockedIsRecordedWithWhatItWasFor() throws Exception {
        Path file = temporary.resolve("stall.jfr");
        try (Recording recording = new Recording();
                World world = World.threads(2)) {
            recording.enable("dev.weft.Stall");
            recording.start();
            world.run(
                    given -> {
                        Transport fabric = Transport.of(given);
                        try (Region region = fabric.allocate(64)) {
                            if (fabric.rank() == 0) {
                                fabric.await(region, 0, 0, 3, Awaited.chunk(1, 1, 12));
                            } else {
                                awaitWaiter((MemoryRegion) region);
                                fabric.signal(region, 0, 0, 3);
                            }
                            fabric.barrier();
                        }
                    });
            recording.stop();
            recording.dump(file);
        }
        List<RecordedEvent> events =
                RecordingFile.readAllEvents(file).stream()
                        .filter(event -> event.getEventType().getName().equals("dev.weft.Stall"))
                        .filter(event -> event.getString("awaited").startsWith("chunk"))
                        .toList();
        assertEquals(1, events.size());
        RecordedEvent event = events.getFirst();
        assertEquals(0, event.getInt("rank"));
        assertEquals("chunk 12 of rank 1 (number 3) from rank 1", event.getString("awaited"));
        assertTrue(event.getDuration("blockedNs").isPositive());
    }

    private static void awaitWaiter(MemoryRegion region) {
        while (region.waiters(0) == 0) {
            Thread.onSpinWait();
        }
    }
}
