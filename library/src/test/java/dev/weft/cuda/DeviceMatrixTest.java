package dev.weft.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Views of device memory, without a device. */
class DeviceMatrixTest {

    private static final long ADDRESS = 1 << 20;

    @ParameterizedTest
    @CsvSource({"0, 2, 3, 3", "16, -1, 3, 3", "16, 2, -3, 3", "16, 2, 3, 2"})
    void whatIsNoMatrixIsRefusedWithItsNumbers(long address, long rows, long cols, long pitch) {
        IllegalArgumentException refusal =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> new DeviceMatrix(address, DType.FP16, rows, cols, pitch));
        String says =
                "device matrix of "
                        + rows
                        + " x "
                        + cols
                        + " with row pitch "
                        + pitch
                        + " at "
                        + address;
        assertTrue(refusal.getMessage().startsWith(says), refusal.getMessage());
    }

    @Test
    void aTypeIsNeeded() {
        assertThrows(NullPointerException.class, () -> new DeviceMatrix(ADDRESS, null, 1, 1, 1));
    }

    @ParameterizedTest
    @CsvSource({
        "FP16, 8, 8",
        "FP16, 9, 16",
        "BF16, 1, 8",
        "FP32, 4, 4",
        "FP32, 5, 8",
        "BF16, 0, 8"
    })
    void alignedRowsStartAtMultiplesOf16Bytes(DType dtype, long cols, long pitch) {
        assertEquals(pitch, DeviceMatrix.alignedPitch(dtype, cols));
        assertEquals(3 * pitch * dtype.bytes(), DeviceMatrix.alignedBytes(dtype, 3, cols));
        assertEquals(pitch * dtype.bytes(), DeviceMatrix.alignedBytes(dtype, 0, cols));
        assertTrue(new DeviceMatrix(ADDRESS, dtype, 3, cols, pitch).isAligned());
    }

    @Test
    void addressAndPitchDecideAboutAlignment() {
        assertFalse(new DeviceMatrix(ADDRESS + 2, DType.FP16, 4, 8, 8).isAligned());
        assertFalse(new DeviceMatrix(ADDRESS, DType.FP16, 4, 8, 9).isAligned());
        assertTrue(new DeviceMatrix(ADDRESS + 16, DType.FP16, 4, 7, 8).isAligned());
    }

    @Test
    void rowsAndElementsLieWhereThePitchSays() {
        DeviceMatrix matrix = new DeviceMatrix(ADDRESS, DType.FP32, 10, 5, 8);
        assertEquals(32, matrix.pitchBytes());
        assertEquals(ADDRESS + 3 * 32 + 2 * 4, matrix.at(3, 2));
        assertEquals(new DeviceMatrix(ADDRESS + 3 * 32, DType.FP32, 4, 5, 8), matrix.rows(3, 4));
        assertEquals(0, matrix.rows(10, 0).rows());
        assertThrows(IndexOutOfBoundsException.class, () -> matrix.rows(7, 4));
        assertThrows(IndexOutOfBoundsException.class, () -> matrix.rows(-1, 2));
        assertEquals("[10, 5] fp32", matrix.describe());
    }

    @Test
    void aHostMatrixOfAnotherShapeOrTypeIsRefusedBeforeAnythingIsCopied() {
        DeviceMatrix matrix = new DeviceMatrix(ADDRESS, DType.FP16, 4, 8, 8);
        GpuStream stream = GpuStream.of(0);
        try (Arena arena = Arena.ofConfined()) {
            Matrix wide = Matrix.allocate(arena, DType.FP16, 4, 9);
            Matrix other = Matrix.allocate(arena, DType.BF16, 4, 8);
            for (Matrix host : new Matrix[] {wide, other}) {
                String says = "host matrix " + host.describe() + ": expected [4, 8] fp16";
                assertEquals(
                        says,
                        assertThrows(
                                        IllegalArgumentException.class,
                                        () -> matrix.upload(host, stream))
                                .getMessage());
                assertEquals(
                        says,
                        assertThrows(
                                        IllegalArgumentException.class,
                                        () -> matrix.download(host, stream))
                                .getMessage());
            }
        }
    }
}
