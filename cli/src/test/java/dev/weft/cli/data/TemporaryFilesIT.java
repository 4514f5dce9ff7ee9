package dev.weft.cli.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import dev.weft.cli.ChildProcess;
import dev.weft.files.AtomicFile;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A signal while files are written leaves no parts of them. */
class TemporaryFilesIT {

    @TempDir private Path folder;

    private ChildProcess child;

    private void awaitEnd() throws InterruptedException {
        child.code();
    }

    @AfterEach
    void leaveNobody() throws InterruptedException {
        child.close();
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
        child =
                ChildProcess.java(
                                folder, TemporaryFilesIT.class.getName(), List.of(file.toString()))
                        .to(ProcessBuilder.Redirect.PIPE)
                        .start();
        assertEquals('+', child.process().getInputStream().read(), "half of it is written");
        assertEquals(1, parts().size());
    }

    @Test
    void whoIsToldToEndRemovesThem() throws Exception {
        startHalf();
        // Process.destroy would end its input as well, at which it finishes the file.
        child.process().toHandle().destroy();
        awaitEnd();
        assertEquals(List.of(), parts());
        assertEquals("old", Files.readString(folder.resolve("file")));
    }

    @Test
    void thoseOfAKilledProcessAreRemovedByTheNextWriter() throws Exception {
        startHalf();
        String living = parts().getFirst();
        child.process().toHandle().destroyForcibly();
        awaitEnd();
        assertEquals(List.of(living), parts());
        String ofOther = ".weft-1-00000000-0123456789abcdef.part";
        String ofUser = ".weft-mine.part";
        for (String name : List.of(ofOther, ofUser)) {
            Files.writeString(folder.resolve(name), "not to be judged yet");
        }
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
        child.process().getOutputStream().close();
        awaitEnd();
        assertEquals(List.of(), parts());
        assertEquals(1000, Files.size(folder.resolve("file")));
    }

    /** Returns the process, not the command itself, that is writing an output. */
    private ProcessHandle awaitWritingRank() {
        while (child.process().isAlive()) {
            for (String part : parts()) {
                long pid = Long.parseLong(part.split("-")[1]);
                if (pid != child.pid() && ProcessHandle.of(pid).isPresent()) {
                    return ProcessHandle.of(pid).orElseThrow();
                }
            }
            LockSupport.parkNanos(100_000);
        }
        throw new AssertionError("no rank was seen to write: " + child);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void ranksThatAreKilledLeaveNone(boolean all) throws Exception {
        // 2 MiB each: long enough to be met while it is being written.
        child =
                ChildProcess.weft(
                                folder,
                                "run -n 2 --gm 1024 --gk 1 --gn 512 --algorithm ring --engine scalar"
                                        + " --warmup 0 --iterations 1 --launcher processes"
                                        + " --quiet --data-dir "
                                        + Files.createDirectory(folder.resolve("out")))
                        .start();
        ProcessHandle rank = awaitWritingRank();
        if (all) {
            child.process().destroy();
        } else {
            rank.destroyForcibly();
        }
        awaitEnd();
        assertNotEquals(0, child.code());
        assertEquals(List.of(), parts());
    }
}
