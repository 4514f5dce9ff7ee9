package dev.weft.gemm.code;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.ffi.Processor;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/**
 * Code for blocks that a newer processor would not choose. It compares itself with {@link
 * ScalarBlocks} when it is made: all types and rows.
 */
class OlderBlocksTest {

    /** Writes {@code vpdpbusd} as AVX-512 has it. */
    private static final class Evex extends X86Assembler {

        Evex() {
            super(256);
        }

        @Override
        public void vpdpbusd(int d, int n, int m) {
            put(0x62);
            put((~d >> 3 & 1) << 7 | 1 << 6 | (~m >> 3 & 1) << 5 | 1 << 4 | 2);
            put((~n & 15) << 3 | 4 | 1);
            put(1 << 5 | 1 << 3);
            put(0x50);
            put(0xC0 | (d & 7) << 3 | m & 7);
        }
    }

    /**
     * AVX-VNNI's instruction has two encodings. Processors with AVX-512 execute the longer one;
     * {@link BlockInstructionsTest} checks the one that Weft writes.
     */
    @Test
    void avxVnniGivesTheSumsOfTheDefinition() {
        Optional<String> missing = Processor.here().lacks(List.of("avx512_vnni", "avx512vl"));
        assumeTrue(missing.isEmpty(), () -> "this processor has no " + missing.orElseThrow());
        BlockCode code = new BlockCode(X86Blocks.avxVnni(new Evex()));
        assertEquals("avxvnni", code.name());
        assertEquals(true, code.isUnsigned());
    }

    @Test
    void avx512WithoutVnniGivesTheSumsOfTheDefinition() {
        Optional<String> missing = Processor.here().lacks(X86Blocks.BYTES_512);
        assumeTrue(missing.isEmpty(), () -> "this processor has no " + missing.orElseThrow());
        BlockCode code = new BlockCode(X86Blocks.avx512bw());
        assertEquals("avx512bw", code.name());
        assertEquals(false, code.isUnsigned());
    }
}
