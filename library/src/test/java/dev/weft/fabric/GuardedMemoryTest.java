package dev.weft.fabric;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.ffi.GuardedMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The guards hold: one byte too far ends a process, though Java's own bounds allow it. */
class GuardedMemoryTest {

    private static final long BYTES = 101;

    enum Step {
        READ_PAST_END,
        WRITE_PAST_END,
        COPY_PAST_END,
        READ_BEFORE_START
    }

    /** A process that touches all that it may, says so, and goes one step too far. */
    static final class Child {

        private Child() {}

        public static void main(String[] args) {
            Step step = Step.valueOf(args[0]);
            GuardedMemory.Flush flush =
                    step == Step.READ_BEFORE_START
                            ? GuardedMemory.Flush.WITH_START
                            : GuardedMemory.Flush.WITH_END;
            try (GuardedMemory memory = new GuardedMemory(flush)) {
                MemorySegment bytes = memory.allocate(BYTES);
                for (long i = 0; i < BYTES; i++) {
                    bytes.set(ValueLayout.JAVA_BYTE, i, (byte) i);
                }
                System.out.println("inside " + bytes.get(ValueLayout.JAVA_BYTE, BYTES - 1));
                System.out.println("outside " + touch(step, bytes));
            }
        }

        @SuppressWarnings("restricted")
        private static byte touch(Step step, MemorySegment bytes) {
            byte[] copy = new byte[(int) BYTES + 1];
            switch (step) {
                case READ_PAST_END -> copy[0] = bytes.get(ValueLayout.JAVA_BYTE, BYTES);
                case WRITE_PAST_END -> bytes.set(ValueLayout.JAVA_BYTE, BYTES, (byte) 1);
                case COPY_PAST_END ->
                        MemorySegment.copy(bytes, ValueLayout.JAVA_BYTE, 0, copy, 0, copy.length);
                case READ_BEFORE_START ->
                        copy[0] =
                                MemorySegment.ofAddress(bytes.address() - 1)
                                        .reinterpret(1)
                                        .get(ValueLayout.JAVA_BYTE, 0);
            }
            return copy[0];
        }
    }

    @BeforeEach
    void assumeGuards() {
        assumeTrue(
                GuardedMemory.unavailable().isEmpty(),
                () -> GuardedMemory.unavailable().orElseThrow());
    }

    @ParameterizedTest
    @EnumSource
    void aStepTooFarEndsTheProcess(Step step) {
        List<String> options = List.of("-XX:+ErrorFileToStdout", "-XX:-CreateCoredumpOnCrash");
        try (ChildJvm child =
                ChildJvm.start(List.of(), options, Child.class, Map.of(), step.name())) {
            assertNotEquals(0, child.exitCode());
            assertEquals("100", child.awaitLine("inside "));
            List<String> output = child.output();
            assertTrue(output.stream().noneMatch(line -> line.startsWith("outside")));
            assertTrue(output.stream().anyMatch(line -> line.contains("SIGSEGV")));
        }
    }

    /** Every size lies at the edge, to the byte, and begins with zeros. */
    @Test
    void segmentsAreFlushWhateverTheirSize() {
        try (GuardedMemory atEnd = new GuardedMemory(GuardedMemory.Flush.WITH_END);
                GuardedMemory atStart = new GuardedMemory(GuardedMemory.Flush.WITH_START)) {
            for (long bytes : new long[] {1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 1 << 20}) {
                assertEquals(0, (atEnd.allocate(bytes).address() + bytes) % 4096);
                assertEquals(0, atStart.allocate(bytes).address() % 4096);
                MemorySegment fresh = atEnd.allocate(bytes);
                assertEquals(0, fresh.get(ValueLayout.JAVA_BYTE, bytes - 1));
            }
        }
    }
}
