package dev.weft.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LargePagesTest {

    private static final long PAGE_BYTES = 4096;

    @Test
    void memoryOfAnySizeIsZeroBeginsAtAPageAndGoesWithItsArena() {
        for (long bytes : new long[] {0, 1, 4097, 300_000, 2 << 20, (5 << 20) + 1}) {
            MemorySegment memory;
            try (Arena arena = Arena.ofShared()) {
                memory = LargePages.allocate(bytes, arena);
                assertEquals(bytes, memory.byteSize());
                assertEquals(0, memory.address() % PAGE_BYTES);
                assertEquals(-1, memory.mismatch(arena.allocate(bytes)), bytes + " bytes of zeros");
                memory.fill((byte) 7);
            }
            assertThrows(IllegalStateException.class, () -> memory.fill((byte) 0));
        }
    }

    /** Whether the system gives large pages of files or not, the bytes stay. */
    @Test
    void memoryOfAFileStaysAsItIs(@TempDir Path folder) throws IOException {
        try (Arena arena = Arena.ofConfined();
                FileChannel file =
                        FileChannel.open(
                                folder.resolve("file"),
                                StandardOpenOption.CREATE,
                                StandardOpenOption.READ,
                                StandardOpenOption.WRITE)) {
            MemorySegment mapped = file.map(FileChannel.MapMode.READ_WRITE, 0, 3 << 20, arena);
            mapped.fill((byte) 7);
            LargePages.prefer(mapped);
            assertEquals(7, mapped.get(ValueLayout.JAVA_BYTE, (3 << 20) - 1));
        }
    }
}
