package dev.weft.cli.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Main;
import dev.weft.files.AtomicFile;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A signal while files are written leaves no parts of them. */
class TemporaryFilesIT {

    private static final long LIMIT_SECONDS = 120;

    @TempDir private Path folder;

    private Process process;

    private Process start(Class<?> main, String arguments) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("--add-modules", "jdk.incubator.vector"));
        command.addAll(List.of("--enable-native-access=ALL-UNNAMED"));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
        command.addAll(List.of(arguments.split(" ")));
        process = new ProcessBuilder(command).redirectError(errors()).start();
        return process;
    }

    private File errors() {
        return folder.resolve("stderr").toFile();
    }

    private void awaitEnd() throws InterruptedException {
        assertTrue(process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS), "does not end");
    }

    @AfterEach
    void leaveNobody() throws InterruptedException {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        awaitEnd();
    }

    private List<String> parts() {
        List<String> names = new ArrayList<>();
        for (Path where : List.of(folder, folder.resolve("out"))) {
            String[] all = where.toFile().list();
            names.addAll(all == null ? List.of() : List.of(all));
        }
        names.removeIf(name -> !name.startsWith(".weft-") || !name.endsWith(".part"));
        return names;
    }

    /** Writes half a file and waits for its end. */
    public static void main(String[] arguments) throws IOException {
        AtomicFile.write(
                Path.of(arguments[0]),
                channel -> {
                    channel.write(ByteBuffer.wrap(new byte[1000]));
                    System.out.write('+');
                    System.out.flush();
                    assertEquals(-1, System.in.read());
                });
    }

    private void startHalf() throws IOException {
        Path file = Files.writeString(folder.resolve("file"), "old");
        start(TemporaryFilesIT.class, file.toString());
        assertEquals('+', process.getInputStream().read(), "half of it is written");
        assertEquals(1, parts().size());
    }

    @Test
    void whoIsToldToEndRemovesThem() throws Exception {
        startHalf();
        // Process.destroy would end its input as well, at which it finishes the file.
        process.toHandle().destroy();
        awaitEnd();
        assertEquals(List.of(), parts());
        assertEquals("old", Files.readString(folder.resolve("file")));
    }

    @Test
    void thoseOfAKilledProcessAreRemovedByTheNextWriter() throws Exception {
        startHalf();
        String living = parts().getFirst();
        process.toHandle().destroyForcibly();
        awaitEnd();
        assertEquals(List.of(living), parts());
        String ofOther = ".weft-1-00000000-0123456789abcdef.part";
        String ofUser = ".weft-mine.part";
        for (String name : List.of(ofOther, ofUser)) {
            Files.writeString(folder.resolve(name), "not to be judged yet");
        }
        String old = ".weft-12345678-1234-1234-1234-123456789abc.part";
        Instant lastWeek = Instant.now().minus(Duration.ofDays(7));
        Files.writeString(folder.resolve(old), "of an earlier version");
        Files.setLastModifiedTime(folder.resolve(old), FileTime.from(lastWeek));
        AtomicFile.write(folder.resolve("other"), "whole");
        assertEquals(
                List.of(ofOther, ofUser).stream().sorted().toList(),
                parts().stream().sorted().toList());
    }

    @Test
    void thoseOfALivingProcessStay() throws Exception {
        startHalf();
        AtomicFile.write(folder.resolve("other"), "whole");
        assertEquals(1, parts().size());
        process.getOutputStream().close();
        awaitEnd();
        assertEquals(List.of(), parts());
        assertEquals(1000, Files.size(folder.resolve("file")));
    }

    /** Returns the process, not the command itself, that is writing an output. */
    private ProcessHandle awaitWritingRank() throws IOException {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
        while (System.nanoTime() < until && process.isAlive()) {
            for (String part : parts()) {
                long pid = Long.parseLong(part.split("-")[1]);
                if (pid != process.pid() && ProcessHandle.of(pid).isPresent()) {
                    return ProcessHandle.of(pid).orElseThrow();
                }
            }
        }
        throw new AssertionError(
                "no rank was seen to write: " + Files.readString(errors().toPath()));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void ranksThatAreKilledLeaveNone(boolean all) throws Exception {
        // 64 MiB each: long enough to be met while it is being written.
        start(
                Main.class,
                "run -n 2 --gm 4096 --gk 8 --gn 4096 --algorithm ring --warmup 0 --iterations 1 --launcher processes"
                        + " --quiet --data-dir "
                        + Files.createDirectory(folder.resolve("out")));
        ProcessHandle rank = awaitWritingRank();
        if (all) {
            process.destroy();
        } else {
            rank.destroyForcibly();
        }
        awaitEnd();
        assertNotEquals(0, process.exitValue());
        assertEquals(List.of(), parts());
    }
}
