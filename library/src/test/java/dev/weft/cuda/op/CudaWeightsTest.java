package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** What is refused before a GPU is asked. */
class CudaWeightsTest {

    @Test
    void elementsOf8BitsNeedScales() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix host = Matrix.allocate(arena, DType.E4M3, 8, 24);
            DeviceMatrix device = new DeviceMatrix(4096, DType.E4M3, 8, 24, 32);
            for (Executable refused :
                    List.<Executable>of(
                            () -> CudaWeights.copyOf(null, host, false),
                            () -> CudaWeights.copyOf(null, device, true))) {
                assertEquals(
                        "weights [8, 24] e4m3 without scales: expected a ScaledMatrix",
                        assertThrows(IllegalArgumentException.class, refused).getMessage());
            }
        }
    }
}
