package dev.weft.ffi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * An arena whose every segment lies between two guards, pages that nobody may touch, and is flush
 * with one of them. Java's own bounds of a segment reach over the guard behind it, so that they do
 * not hide an access past the end: it ends the JVM, in native code and in Java alike.
 *
 * <pre>
 * guard (64 KiB) | whole units of 64 KiB, in which the segment is the last or the first | guard
 * </pre>
 *
 * <p>Segments are zero at first. One thread allocates and closes; any thread may use the segments,
 * and none after the end. Alignments are kept only up to 8 bytes, and only where the size is a
 * multiple: what is flush with the end cannot begin where it likes. Linux only.
 */
@SuppressWarnings("restricted")
public final class GuardedMemory implements Arena {

    /** Where segments lie. */
    public enum Flush {
        /** The first byte after a segment is a guard's. */
        WITH_END,
        /** The byte before a segment is a guard's. */
        WITH_START
    }

    /** A page on every machine, or several. */
    private static final long UNIT_BYTES = 64 << 10;

    private final Flush flush;
    private final List<MemorySegment> mappings = new ArrayList<>();

    public GuardedMemory(Flush flush) {
        this.flush = flush;
    }

    /** Why there are no guards here, or empty where there are. */
    public static Optional<String> unavailable() {
        return Mappings.available()
                ? Optional.empty()
                : Optional.of("guard pages are mapped as Linux does it");
    }

    @Override
    public MemorySegment allocate(long bytes, long alignment) {
        long unitBytes = Math.ceilDiv(bytes, UNIT_BYTES) * UNIT_BYTES;
        long mappedBytes = unitBytes + 2 * UNIT_BYTES;
        long start = Mappings.map(mappedBytes, Mappings.NONE);
        mappings.add(MemorySegment.ofAddress(start).reinterpret(mappedBytes));
        long first = start + UNIT_BYTES;
        if (unitBytes > 0) {
            Mappings.protect(first, unitBytes, Mappings.READ_WRITE);
        }
        long at = flush == Flush.WITH_START ? first : first + unitBytes - bytes;
        return MemorySegment.ofAddress(at).reinterpret(start + mappedBytes - at);
    }

    /** Of memory that is there for ever, as far as Java knows. */
    @Override
    public MemorySegment.Scope scope() {
        return MemorySegment.NULL.scope();
    }

    @Override
    public void close() {
        for (MemorySegment mapping : mappings) {
            Mappings.unmap(mapping.address(), mapping.byteSize());
        }
        mappings.clear();
    }
}
