package dev.weft.fabric;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
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
        try (Recording recording = new Recording()) {
            recording.enable("dev.weft.Stall");
            recording.start();
            RankRunner.threads()
                    .run(
                            2,
                            Duration.ofSeconds(60),
                            fabric -> {
                                try (Region region = fabric.allocate(64)) {
                                    if (fabric.rank() == 0) {
                                        fabric.await(region, 0, 0, 3, Awaited.chunk(1, 1, 12));
                                    } else {
                                        awaitWaiter((MemoryRegion) region);
                                        fabric.signal(region, 0, 0, 3);
                                    }
                                    fabric.barrier();
                                }
                            })
                    .assertNoFailure();
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
