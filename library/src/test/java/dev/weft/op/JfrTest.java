package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What Flight Recorder sees of calls; blocked waits are in the fabric's own test. */
class JfrTest {

    @TempDir Path temporary;

    @Test
    void everyCallIsRecordedOnEveryRank() throws Exception {
        Path file = temporary.resolve("calls.jfr");
        try (Recording recording = new Recording()) {
            recording.enable("dev.weft.Call").withoutThreshold();
            recording.start();
            callTwice();
            recording.stop();
            recording.dump(file);
        }
        List<RecordedEvent> events =
                RecordingFile.readAllEvents(file).stream()
                        .filter(event -> event.getEventType().getName().equals("dev.weft.Call"))
                        .toList();
        Set<String> seen = new HashSet<>();
        for (RecordedEvent event : events) {
            assertEquals("ring", event.getString("algorithm"));
            assertTrue(event.getDuration("elapsedNs").isPositive());
            seen.add(
                    event.getInt("rank")
                            + " "
                            + event.getInt("call")
                            + " "
                            + event.getString("view"));
        }
        assertEquals(
                Set.of("0 1 PIPELINED", "0 2 COMM_ONLY", "1 1 PIPELINED", "1 2 COMM_ONLY"), seen);
        assertEquals(4, events.size());
    }

    private static void callTwice() {
        Arena arena = Arena.ofAuto();
        Problem problem = Problem.create(arena, Shards.of(9, 4), 11, 6, DType.FP32, 2);
        Ranks.run(
                2,
                fabric -> {
                    try (AllGatherMatmul op =
                            problem.on(fabric).algorithm(Algorithm.RING).prepare()) {
                        op.call(problem.shard(fabric.rank()));
                        op.nextShard().copyFrom(problem.shard(fabric.rank()));
                        op.callInPlace(View.COMM_ONLY);
                    }
                });
    }
}
