package dev.weft.cuda.exec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.exec.DeviceOperands.B;
import dev.weft.tensor.DType;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Bs that are not copied, which takes no GPU. */
class DeviceOperandsTest {

    private static final DeviceMatrix ALIGNED = new DeviceMatrix(4096, DType.BF16, 24, 40, 48);

    @Test
    void anAlignedMatrixIsReadInPlace() {
        try (DeviceOperands operands = new DeviceOperands()) {
            operands.addB(new B(ALIGNED, false), null, false, null);
            assertSame(ALIGNED, operands.b(0));
            assertEquals(0, operands.bytes());
        }
    }

    @Test
    void whatIsLoadedIsNeverCopied() {
        try (DeviceOperands loaded = new DeviceOperands();
                DeviceOperands first = new DeviceOperands();
                DeviceOperands second = new DeviceOperands()) {
            loaded.addB(new B(ALIGNED, true), null, false, null);
            B b = new B(loaded, true);
            assertEquals(DType.BF16, b.dtype());
            for (DeviceOperands operands : List.of(first, second)) {
                for (boolean copies : new boolean[] {false, true}) {
                    operands.addB(b, null, copies, null);
                }
                assertEquals(List.of(ALIGNED, ALIGNED), operands.bs());
                assertNull(operands.scales(1));
                assertEquals(0, operands.bytes());
            }
        }
    }
}
