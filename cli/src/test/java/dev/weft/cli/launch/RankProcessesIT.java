package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.fabric.memory.ShmJob;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Programs as ranks, and what is known of them at the end. */
class RankProcessesIT {

    private static final Duration DEADLINE = Duration.ofHours(1);

    private static String failure(String... scripts) throws IOException {
        try (RankProcesses processes = new RankProcesses(ShmJob.create(), DEADLINE)) {
            for (String script : scripts) {
                processes.start(new ProcessBuilder("sh", "-c", script), scripts.length);
            }
            int failed = processes.await(() -> {});
            return processes.failure(failed).getMessage();
        }
    }

    /** As Java does where it may start no thread. */
    @Test
    void aProgramThatFailsBeforeItIsARankIsQuoted() throws Exception {
        assertEquals(
                "rank 1 failed: unable to create native thread",
                failure(
                        "exit 0",
                        "echo Error >&2; echo unable to create native thread >&2; exit 1"));
        assertEquals("rank 0 failed: the reason", failure("echo 'weft: the reason' >&2; exit 2"));
        assertEquals("rank 0 failed with exit code 3", failure("exit 3"));
    }

    @Test
    void allThatAProgramPrintsIsThereWithoutAThreadThatReads() throws Exception {
        try (RankProcesses processes = new RankProcesses(ShmJob.create(), DEADLINE)) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            processes.start(
                    new ProcessBuilder("seq", "1", "30000"), 1, printed::writeBytes, errors -> {});
            assertEquals(-1, processes.await(() -> {}));
            List<String> lines = printed.toString(StandardCharsets.UTF_8).lines().toList();
            assertEquals(30_000, lines.size());
            assertEquals("30000", lines.getLast());
        }
    }
}
