package dev.weft.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** DLPack's structures in both directions, as its header lays them out. */
class DlpackTensorTest {

    private static final long SOMEWHERE = 0x7f00_0000_1000L;

    @ParameterizedTest
    @EnumSource(DType.class)
    void aMatrixComesBack(DType type) {
        try (Arena arena = Arena.ofConfined()) {
            DeviceMatrix matrix = new DeviceMatrix(SOMEWHERE, type, 3, 40, 48);
            MemorySegment tensor = DlpackTensor.write(matrix, 1, arena);
            assertEquals(matrix, DlpackTensor.read(tensor.address(), 1));
            assertEquals(1, tensor.get(JAVA_INT, 12), "device number");
            assertEquals(0, tensor.get(JAVA_LONG, 56), "deleter");
        }
    }

    @ParameterizedTest
    @CsvSource({"2, 32, FP32", "2, 16, FP16", "4, 16, BF16", "10, 8, E4M3", "12, 8, E5M2"})
    void typesHaveDlpacksNumbers(int code, int bits, DType type) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment tensor = tensor(arena, 2, code, bits, 5, 7);
            DeviceMatrix read = DlpackTensor.read(tensor.address(), 0);
            assertEquals(new DeviceMatrix(SOMEWHERE, type, 5, 7, 7), read);
        }
    }

    /** Without strides, as libraries may leave them out. */
    private static MemorySegment tensor(
            Arena arena, int device, int code, int bits, long... shape) {
        MemorySegment tensor = arena.allocate(64, 8);
        tensor.set(JAVA_LONG, 0, SOMEWHERE);
        tensor.set(JAVA_INT, 8, device);
        tensor.set(JAVA_INT, 16, shape.length);
        tensor.set(JAVA_BYTE, 20, (byte) code);
        tensor.set(JAVA_BYTE, 21, (byte) bits);
        tensor.set(JAVA_SHORT, 22, (short) 1);
        tensor.set(ADDRESS, 24, arena.allocateFrom(JAVA_LONG, shape));
        return tensor;
    }

    @Test
    void offsetsAndStridesCount() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment tensor = tensor(arena, 2, 2, 16, 5, 7);
            tensor.set(JAVA_LONG, 40, 256);
            tensor.set(ADDRESS, 32, arena.allocateFrom(JAVA_LONG, 16, 1));
            assertEquals(
                    new DeviceMatrix(SOMEWHERE + 256, DType.FP16, 5, 7, 16),
                    DlpackTensor.read(tensor.address(), 0));
        }
    }

    /** Of one row the stride between rows is whatever a library has left there. */
    @Test
    void theStrideOfOneRowIsIgnored() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment tensor = tensor(arena, 2, 2, 16, 1, 7);
            tensor.set(ADDRESS, 32, arena.allocateFrom(JAVA_LONG, 1, 1));
            assertEquals(7, DlpackTensor.read(tensor.address(), 0).rowPitch());
        }
    }

    /** Libraries show no address where there is nothing. */
    @Test
    void aTensorWithoutElementsHasNoAddress() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment tensor = tensor(arena, 2, 2, 16, 0, 7);
            tensor.set(JAVA_LONG, 0, 0);
            DeviceMatrix read = DlpackTensor.read(tensor.address(), 0);
            assertEquals(new DeviceMatrix(0, DType.FP16, 0, 7, 7), read);
            DeviceMatrix empty = new DeviceMatrix(SOMEWHERE, DType.FP16, 0, 7, 8);
            assertEquals(0, DlpackTensor.write(empty, 0, arena).get(JAVA_LONG, 0));
            tensor.set(ADDRESS, 24, arena.allocateFrom(JAVA_LONG, 5, 7));
            assertRefused(tensor, "5 x 7", "at 0");
        }
    }

    private static void assertRefused(MemorySegment tensor, String... words) {
        String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () -> DlpackTensor.read(tensor.address(), 0))
                        .getMessage();
        for (String word : words) {
            assertTrue(message.contains(word), message);
        }
        assertEquals(1, message.lines().count(), message);
    }

    @Test
    void othersAreRefused() {
        try (Arena arena = Arena.ofConfined()) {
            assertRefused(tensor(arena, 1, 2, 16, 5, 7), "type 1", "type 2");
            assertRefused(tensor(arena, 2, 2, 16, 5, 7, 9), "3 dimensions");
            MemorySegment elsewhere = tensor(arena, 2, 2, 16, 5, 7);
            elsewhere.set(JAVA_INT, 12, 3);
            assertRefused(elsewhere, "device 3", "GPU 0");
            assertRefused(tensor(arena, 2, 2, 64, 5, 7), "code 2", "64 bits", "fp32");
            assertRefused(tensor(arena, 2, 0, 8, 5, 7), "code 0", "8 bits");
            MemorySegment columns = tensor(arena, 2, 2, 16, 5, 7);
            columns.set(ADDRESS, 32, arena.allocateFrom(JAVA_LONG, 1, 5));
            assertRefused(columns, "strides 1 and 5", "side by side");
            MemorySegment overlapping = tensor(arena, 2, 2, 16, 5, 7);
            overlapping.set(ADDRESS, 32, arena.allocateFrom(JAVA_LONG, 3, 1));
            assertRefused(overlapping, "row pitch 3");
            assertThrows(IllegalArgumentException.class, () -> DlpackTensor.read(0, 0));
        }
    }
}
