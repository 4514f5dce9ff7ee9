package dev.weft.fabric;

import dev.weft.plan.Group;
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
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Ranks that are processes of one host: each part is a file in shared memory that every rank maps
 * and its owner unlinks as soon as all have, so that nothing is left however the processes end.
 */
final class ShmFabric extends MemoryFabric {

    private final Path folder;

    /** Of every region that this rank still maps; shared with its parts. */
    private final Set<Arena> mapped;

    private ShmFabric(
            String id,
            Group group,
            int rank,
            MemoryRegion control,
            Health health,
            Path folder,
            Set<Arena> mapped) {
        super(id, group, rank, control, health);
        this.folder = folder;
        this.mapped = mapped;
    }

    static ShmFabric world(int ranks, int rank, MemoryRegion control, Health health, Path folder) {
        Set<Arena> mapped = ConcurrentHashMap.newKeySet();
        return new ShmFabric(WORLD_ID, Group.world(ranks), rank, control, health, folder, mapped);
    }

    @Override
    public String kind() {
        return "processes";
    }

    @Override
    MemoryFabric part(String id, Group group, int rank, MemoryRegion control) {
        return new ShmFabric(id, group, rank, control, health, folder, mapped);
    }

    @Override
    MemoryRegion allocateParts(String name, long bytesWithHeader) {
        Path own = folder.resolve(name + "-" + rank());
        Arena arena = Arena.ofShared();
        try {
            reserve(own, bytesWithHeader, this::worked);
            barrier();
            MemorySegment[] whole = new MemorySegment[size()];
            for (int r = 0; r < size(); r++) {
                whole[r] = mapPart(folder.resolve(name + "-" + r), arena);
            }
            barrier();
            mapped.add(arena);
            return new MemoryRegion(whole, () -> unmap(arena));
        } catch (IOException e) {
            arena.close();
            throw new UncheckedIOException(e.getMessage(), e);
        } catch (RuntimeException e) {
            arena.close();
            throw e;
        } finally {
            unlink(own);
        }
    }

    private MemorySegment mapPart(Path file, Arena arena) throws IOException {
        try {
            return map(file, arena);
        } catch (NoSuchFileException e) {
            // Its owner gave up in one of an allocation's two barriers, and unlinked it. It never
            // enters a third one, which therefore tells why.
            barrier();
            barrier();
            throw e;
        }
    }

    private void unmap(Arena arena) {
        if (mapped.remove(arena)) {
            arena.close();
        }
    }

    /** Shared memory is freed once nobody maps it: leaving ends what a failure left mapped. */
    @Override
    public void close() {
        super.close();
        if (id.equals(WORLD_ID)) {
            mapped.forEach(this::unmap);
        }
    }

    /** Creates a small file of zeros. */
    static void reserve(Path file, long bytes) throws IOException {
        reserve(file, bytes, () -> {});
    }

    /**
     * Creates a file of zeros. Written out, not only sized: a full shared memory must say so here,
     * where it is an error, and not as a bus error at the first touch.
     *
     * @param heartbeat called now and then, for peers that wait meanwhile
     */
    static void reserve(Path file, long bytes, Runnable heartbeat) throws IOException {
        Set<StandardOpenOption> options =
                Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        try (FileChannel channel =
                FileChannel.open(
                        file,
                        options,
                        PosixFilePermissions.asFileAttribute(
                                PosixFilePermissions.fromString("rw-------")))) {
            ByteBuffer zeros = ByteBuffer.allocateDirect((int) Math.min(bytes, 1 << 20));
            for (long written = 0; written < bytes; ) {
                zeros.clear().limit((int) Math.min(zeros.capacity(), bytes - written));
                written += channel.write(zeros);
                heartbeat.run();
            }
        } catch (IOException e) {
            Files.deleteIfExists(file);
            throw new IOException(
                    "cannot reserve "
                            + bytes
                            + " bytes of shared memory in "
                            + file.getParent()
                            + " ("
                            + e.getMessage()
                            + "): "
                            + freeBytes(file.getParent())
                            + " bytes are free there; make it larger, or set WEFT_SHM_DIR to a"
                            + " folder with room",
                    e);
        }
    }

    private static long freeBytes(Path folder) throws IOException {
        return Files.getFileStore(folder).getUsableSpace();
    }

    static MemorySegment map(Path file, Arena arena) throws IOException {
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
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
