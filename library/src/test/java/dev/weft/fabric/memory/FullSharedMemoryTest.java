package dev.weft.fabric.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.ThreadGroupRun;
import dev.weft.fabric.World;
import dev.weft.fabric.transport.Transport;
import dev.weft.files.PrivateFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Too little shared memory is an error in time, never a bus error later. */
class FullSharedMemoryTest {

    private static final long ROOM_BYTES = 256 * 1024;

    @TempDir Path temporary;

    private Path small;
    private boolean mounted;

    @BeforeEach
    void mountASmallFileSystem() throws Exception {
        boolean superuser = Files.getAttribute(Path.of("/proc/self"), "unix:uid").equals(0);
        assumeTrue(superuser, "only the superuser can mount a small file system");
        small = Files.createDirectory(temporary.resolve("small"));
        mounted = isDone("mount", "-t", "tmpfs", "-o", "size=" + ROOM_BYTES, "weft", "" + small);
        assumeTrue(mounted, "this system does not let its superuser mount");
    }

    @AfterEach
    void unmount() throws Exception {
        if (mounted) {
            assertTrue(isDone("umount", small.toString()));
        }
    }

    private static boolean isDone(String... command) throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder(List.of(command));
        return builder.redirectErrorStream(true).start().waitFor() == 0;
    }

    @Test
    void aReservationThatDoesNotFitSaysHowMuchThereIsAndLeavesNothing() throws IOException {
        Path file = small.resolve("region");
        String message =
                assertThrows(IOException.class, () -> SharedParts.reserve(file, 1 << 20))
                        .getMessage();
        assertTrue(
                message.startsWith("cannot reserve 1048576 bytes of shared memory in " + small),
                message);
        assertTrue(message.contains(ROOM_BYTES + " bytes are free there"), message);
        assertTrue(message.contains("WEFT_SHM_DIR"), message);
        assertFalse(Files.exists(file));
        SharedParts.reserve(file, ROOM_BYTES);
    }

    @Test
    void aFileSystemWithoutInodesSaysSo() throws Exception {
        // The folder itself is one.
        assertTrue(isDone("mount", "-o", "remount,nr_inodes=2", "" + small));
        PrivateFiles.create(small.resolve("first")).close();
        String message =
                assertThrows(
                                IOException.class,
                                () -> SharedParts.reserve(small.resolve("second"), 1000))
                        .getMessage();
        assertTrue(message.contains("but no inodes for more files (df -i)"), message);
        assertFalse(message.contains("make it larger"), message);
        Path above = small;
        String starter =
                assertThrows(UncheckedIOException.class, () -> ShmJob.create(above)).getMessage();
        assertTrue(starter.contains("but no inodes for more files (df -i)"), starter);
    }

    @Test
    void oneRankWithoutRoomEndsTheAllocationOnAll() throws IOException {
        Path folder = PrivateFiles.folder(small.resolve("job"));
        ThreadGroupRun threads = new ThreadGroupRun();
        for (int r = 0; r < 2; r++) {
            int rank = r;
            threads.start(
                    () -> {
                        try (ShmFabric fabric =
                                Rendezvous.join(
                                        folder, rank, 2, RunToken.NONE, Duration.ofSeconds(60))) {
                            if (rank == 1) {
                                awaitFile(folder.resolve("w-0-0"), MemoryRegion.HEADER_BYTES + 100);
                            }
                            RuntimeException failure =
                                    assertThrows(
                                            RuntimeException.class,
                                            () -> allocate(fabric, rank == 0 ? 100 : 1 << 20));
                            assertEquals(
                                    rank == 0
                                            ? PeerFailedException.class
                                            : UncheckedIOException.class,
                                    failure.getClass());
                            String message = failure.getMessage();
                            assertTrue(message.contains("cannot reserve 1052672 bytes"), message);
                        }
                    });
        }
        threads.join();
        try (var left = Files.list(folder)) {
            assertEquals(List.of(), left.toList());
        }
    }

    /** The one with room comes first: while the other tries, there is none left for anybody. */
    private static void awaitFile(Path file, long bytes) throws IOException {
        while (!Files.exists(file) || Files.size(file) < bytes) {
            Thread.onSpinWait();
        }
    }

    /** As a body does it that {@link World} runs: a failure is told to the peers. */
    private static void allocate(Transport fabric, long bytes) {
        try {
            fabric.allocate(bytes).close();
        } catch (RuntimeException e) {
            fabric.fail(e);
            throw e;
        }
    }
}
