package dev.weft.bench.peers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs({OS.LINUX, OS.MAC})
class SteppedProcessTest {

    private static final Duration LONG = Duration.ofSeconds(60);

    @TempDir Path folder;

    private SteppedProcess shell(String script) throws Exception {
        return SteppedProcess.started(
                "shell", List.of("sh", "-c", script), Map.of("WORD", "blue", "HOME", ""), folder);
    }

    @Test
    void everyLineIsAnswered() throws Exception {
        String script = "echo ready $WORD ${HOME-gone}; while read x; do echo did $x; done";
        try (SteppedProcess process = shell(script)) {
            assertEquals("ready blue gone", process.ready());
            assertEquals("did a", process.ask("a", LONG));
            assertEquals("did b", process.ask("b", LONG));
        }
    }

    @Test
    void aProgramThatEndsIsToldWithItsLastWords() throws Exception {
        String script = "echo no luck >&2; echo ---- >&2; exit 3";
        var failure = assertThrows(SteppedProcess.PeerException.class, () -> shell(script));
        assertEquals("shell has ended: no luck", failure.getMessage());
    }

    @Test
    void aProgramThatDoesNotAnswerIsEndedWithAllItStarted() throws Exception {
        ProcessHandle below;
        try (SteppedProcess process = shell("sleep 1000 & echo $!; read never; wait")) {
            below = ProcessHandle.of(Long.parseLong(process.ready())).orElseThrow();
            assertTrue(below.isAlive());
            var failure =
                    assertThrows(
                            SteppedProcess.PeerException.class,
                            () -> process.ask("x", Duration.ofMillis(1)));
            assertTrue(failure.getMessage().startsWith("shell did not answer within"));
        }
        below.onExit().get();
        assertFalse(below.isAlive());
    }
}
