package dev.weft.fabric.memory;

import dev.weft.ffi.LargePages;
import dev.weft.files.PrivateFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.BitSet;

/**
 * The parts of one region as files in shared memory. Each rank creates its own, maps those of its
 * host and unlinks its own as soon as all have mapped it.
 */
public final class SharedParts {

    /** The text of ENOSPC; Java has no other sign of it. */
    static final String NO_SPACE = "No space left on device";

    private final MemoryFabric fabric;
    private final Path folder;
    private final String name;

    /**
     * @param name the same on every rank, different for every region
     */
    public SharedParts(MemoryFabric fabric, Path folder, String name) {
        this.fabric = fabric;
        this.folder = folder;
        this.name = name;
    }

    private Path file(int rank) {
        return folder.resolve(name + "-" + rank);
    }

    /** Collective: maps the parts of {@code ranks} into {@code whole}. */
    public void map(long bytes, BitSet ranks, MemorySegment[] whole, Arena arena) {
        try {
            reserve(file(fabric.rank()), bytes, fabric::worked);
            fabric.barrier();
            for (int r = ranks.nextSetBit(0); r >= 0; r = ranks.nextSetBit(r + 1)) {
                whole[r] = mapPart(file(r), arena);
                LargePages.prefer(whole[r]);
            }
            fabric.barrier();
        } catch (IOException e) {
            throw new UncheckedIOException(e.getMessage(), e);
        } finally {
            unlink(file(fabric.rank()));
        }
    }

    private MemorySegment mapPart(Path file, Arena arena) throws IOException {
        try {
            return map(file, arena);
        } catch (NoSuchFileException e) {
            // Its owner gave up in one of the two barriers of an allocation, and unlinked the file.
            // It never enters a third barrier, which therefore throws its error.
            fabric.barrier();
            fabric.barrier();
            throw e;
        }
    }

    /** Creates a small file of zeros. */
    public static void reserve(Path file, long bytes) throws IOException {
        reserve(file, bytes, () -> {});
    }

    /**
     * Creates a file of zeros. They are written, so that a full shared memory is an error here, and
     * not a bus error at the first access.
     *
     * @param heartbeat called now and then, for peers that wait meanwhile
     */
    public static void reserve(Path file, long bytes, Runnable heartbeat) throws IOException {
        try (FileChannel channel = PrivateFiles.create(file)) {
            ByteBuffer zeros = ByteBuffer.allocateDirect((int) Math.min(bytes, 1 << 20));
            for (long written = 0; written < bytes; ) {
                zeros.clear().limit((int) Math.min(zeros.capacity(), bytes - written));
                written += channel.write(zeros);
                heartbeat.run();
            }
        } catch (IOException e) {
            Files.deleteIfExists(file);
            Path folder = file.getParent();
            throw new IOException(
                    "cannot reserve %s bytes of shared memory in %s (%s): %s"
                            .formatted(bytes, folder, e.getMessage(), room(folder, bytes, e)),
                    e);
        }
    }

    /** What to do about a file that could not be created; bytes or inodes may be used up. */
    static String room(Path folder, long bytes, IOException e) throws IOException {
        long free = Files.getFileStore(folder).getUsableSpace();
        boolean full = String.valueOf(e.getMessage()).contains(NO_SPACE);
        return full && free >= bytes
                ? """
                %s bytes are free there, but no inodes for more files (df -i); remove files, or set \
                WEFT_SHM_DIR to a folder with room\
                """
                        .formatted(free)
                : """
                %s bytes are free there; make it larger, or set WEFT_SHM_DIR to a folder with room\
                """
                        .formatted(free);
    }

    public static MemorySegment map(Path file, Arena arena) throws IOException {
        try (FileChannel channel =
                PrivateFiles.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            return channel.map(FileChannel.MapMode.READ_WRITE, 0, channel.size(), arena);
        }
    }

    private static void unlink(Path file) {
        try {
            Files.deleteIfExists(file);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot remove " + file, e);
        }
    }
}
