package dev.weft.fabric.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.ChildJvm;
import dev.weft.fabric.transport.Transport;
import dev.weft.files.PrivateFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A starter that is killed leaves no rank and no file behind. */
class StarterWatchTest {

    private static final Duration LONG = Duration.ofSeconds(60);

    private static final long LIMIT_SECONDS = 60;

    @TempDir Path shared;
    @TempDir Path outputs;

    private final List<ProcessHandle> ranks = new ArrayList<>();

    @AfterEach
    void endRanks() {
        ranks.forEach(ProcessHandle::destroyForcibly);
    }

    private ChildJvm starter(int size, int started) {
        return ChildJvm.start(
                StarterChild.class,
                Map.of("WEFT_SHM_DIR", shared.toString()),
                Integer.toString(size),
                Integer.toString(started),
                outputs.toString());
    }

    /** Waits until the rank has written a line that starts so; the rest of it. */
    private String awaitLine(int rank, String prefix) throws Exception {
        Path output = outputs.resolve("rank-" + rank);
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
        while (true) {
            String text = Files.exists(output) ? Files.readString(output) : "";
            for (String line : text.split("\n")) {
                if (line.startsWith(prefix) && text.endsWith("\n")) {
                    return line.substring(prefix.length());
                }
            }
            assertTrue(System.nanoTime() < until, "no '" + prefix + "' came: " + text);
            TimeUnit.MILLISECONDS.sleep(5);
        }
    }

    private void awaitProcess(int rank) throws Exception {
        long pid = Long.parseLong(awaitLine(rank, "pid "));
        ranks.add(ProcessHandle.of(pid).orElseThrow());
    }

    /** The starter alone: its ranks live on. */
    private static void kill(ChildJvm starter) {
        ProcessHandle.of(starter.pid()).orElseThrow().destroyForcibly();
    }

    private void assertNothingIsLeft() throws Exception {
        for (ProcessHandle rank : ranks) {
            rank.onExit().get(LIMIT_SECONDS, TimeUnit.SECONDS);
        }
        try (var left = Files.list(shared)) {
            assertEquals(List.of(), left.toList());
        }
    }

    @Test
    void ranksThatWaitEndWithItAndTheLastOneRemovesTheFolder() throws Exception {
        int count = 3;
        try (ChildJvm starter = starter(count, count)) {
            for (int r = 0; r < count; r++) {
                awaitProcess(r);
                awaitLine(r, "running");
            }
            kill(starter);
            for (int r = 0; r < count; r++) {
                String end = awaitLine(r, "ended ");
                assertTrue(end.startsWith("PeerFailedException rank " + r + ": rank "), end);
                assertTrue(end.contains("the command that started this rank is gone"), end);
            }
            assertNothingIsLeft();
        }
    }

    @Test
    void aRankThatStillWaitsForOthersToComeEndsToo() throws Exception {
        try (ChildJvm starter = starter(2, 1)) {
            Path folder = Path.of(starter.awaitLine("folder "));
            awaitProcess(0);
            awaitFile(folder.resolve("rank-0.control"));
            kill(starter);
            assertEquals(
                    "IllegalStateException " + StarterWatch.gone(folder).getMessage(),
                    awaitLine(0, "ended "));
            assertNothingIsLeft();
        }
    }

    private static void awaitFile(Path file) throws InterruptedException {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
        while (!Files.exists(file)) {
            assertTrue(System.nanoTime() < until, file + " does not come");
            TimeUnit.MILLISECONDS.sleep(2);
        }
    }

    @Test
    void aRankThatComesTooLateIsRefusedAndMakesNothing() throws IOException {
        Map<String, String> environment;
        Path folder;
        try (ShmJob job = ShmJob.create(shared)) {
            environment = job.environment(0, 1, LONG);
            folder = job.folder();
        }
        String message =
                assertThrows(
                                IllegalStateException.class,
                                () -> RankEnvironment.join(environment, LONG))
                        .getMessage();
        assertEquals(StarterWatch.gone(folder).getMessage(), message);
        // Killed: the folder is there, with a lock that nobody holds.
        PrivateFiles.folder(folder);
        PrivateFiles.create(folder.resolve(ShmJob.STARTER_LOCK)).close();
        assertThrows(IllegalStateException.class, () -> RankEnvironment.join(environment, LONG));
        assertFalse(Files.exists(folder), "the last to look removes it");
    }

    @Test
    void aStarterThatLivesLetsItsRanksBe() {
        try (ShmJob job = ShmJob.create(shared)) {
            try (Transport fabric = RankEnvironment.join(job.environment(0, 1, LONG), LONG)) {
                fabric.barrier();
            }
            assertTrue(Files.exists(job.folder()), "left to the starter");
        }
    }
}
