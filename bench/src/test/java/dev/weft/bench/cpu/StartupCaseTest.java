package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.peers.ChildCommand;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** With a script in place of the launcher: what is started, and what becomes of it. */
class StartupCaseTest {

    private static final int ALGORITHMS = 6;

    @TempDir Path folder;

    private Path script(String body) throws IOException {
        Path script = folder.resolve("weft");
        Files.writeString(script, "#!/bin/sh\n" + body + "\n");
        assertTrue(script.toFile().setExecutable(true));
        return script;
    }

    @Test
    void startsTheLauncherAndCountsBytes() throws IOException, InterruptedException {
        Collected found = new Collected();
        Path weft = script("echo \"$@\" >>arguments");
        new StartupCase(weft).run(new BenchCase.Settings(true, 2, folder), found);
        found.assertSound("startup");
        assertEquals(List.of(), found.skipped);
        assertEquals(3 + ALGORITHMS, found.rows.size());
        assertEquals("1.0 s", found.rows.getFirst().peer());
        assertEquals("0.6 s", found.rows.get(1).peer());
        List<String> starts = Files.readAllLines(folder.resolve("startup/arguments"));
        assertEquals(6, starts.size(), "of each one to build, two to time");
        String run = "run --gm 64 --gk 64 --gn 64 --warmup 1 --iterations 1";
        assertEquals(run, starts.getFirst());
        assertEquals(run + " --algorithm ring", starts.getLast());
        assertEquals("1.2 times the hundredth", found.rows.get(2).peer());
        for (BenchRow row : found.rows.subList(3, found.rows.size())) {
            assertEquals("no allocation", row.peer());
            assertTrue(row.figures().get("bytesPerCall") >= 0, row.toString());
        }
    }

    @Test
    void aMissingLauncherIsSkippedWithItsReason() throws IOException, InterruptedException {
        Collected found = new Collected();
        new StartupCase(folder.resolve("none")).run(new BenchCase.Settings(true, 2, folder), found);
        assertEquals(1 + ALGORITHMS, found.rows.size());
        assertTrue(found.skipped.getFirst().endsWith("is not there to be started"));
    }

    @Test
    void aFailureCarriesTheChildsMessage() throws IOException {
        Path weft = script("echo 'weft: no such thing' >&2; exit 2");
        ChildCommand child = new ChildCommand(List.of(weft.toString()), folder);
        Exception failure = assertThrows(IOException.class, () -> child.run(Duration.ofMinutes(1)));
        assertEquals(weft + ": no such thing", failure.getMessage());
    }

    @Test
    void aChildBeyondItsLimitIsEndedWithItsChildren() throws IOException {
        Path weft = script("sleep 1000 & echo $! >child; wait");
        ChildCommand command = new ChildCommand(List.of(weft.toString()), folder);
        Exception failure =
                assertThrows(IOException.class, () -> command.run(Duration.ofSeconds(2)));
        assertTrue(failure.getMessage().contains("not done after 2 s"), failure.getMessage());
        long child = Long.parseLong(Files.readString(folder.resolve("child")).strip());
        ProcessHandle.of(child).ifPresent(handle -> handle.onExit().join());
        assertFalse(ProcessHandle.of(child).map(ProcessHandle::isAlive).orElse(false));
    }
}
