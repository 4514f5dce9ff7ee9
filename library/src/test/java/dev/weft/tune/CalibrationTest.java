package dev.weft.tune;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.Machine;
import dev.weft.sim.MachineFile;
import dev.weft.tensor.DType;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class CalibrationTest {

    /** What is measured depends on the machine; that it is usable does not. */
    @Test
    void theMeasuredMachineIsWholeAndCanBeKept() {
        Gemm gemm = Gemms.byName("scalar");
        AtomicInteger beats = new AtomicInteger();
        Effort least =
                new Effort(
                        "tried",
                        List.of(new long[] {64, 64}, new long[] {128, 32}),
                        1 << 20,
                        1,
                        Duration.ofSeconds(2),
                        beats::incrementAndGet);
        Machine machine = Calibration.measure(type -> gemm, least);
        CoreEngine engine = assertInstanceOf(CoreEngine.class, machine.engine());
        assertEquals(Runtime.getRuntime().availableProcessors(), engine.cores());
        assertEquals(gemm.rowQuantum(), engine.rowQuantum());
        assertEquals(gemm.blockRows(), engine.blockRows());
        for (DType type : DType.UNSCALED) {
            double gflops = engine.costs().get(type).gflops();
            assertTrue(gflops > 0.001 && gflops < 100_000, type + ": " + gflops);
        }
        assertTrue(machine.node().coreGbps() > 0);
        assertTrue(machine.node().gbps() >= machine.node().coreGbps());
        assertTrue(machine.overheads().wakeUs() > 0);
        assertTrue(beats.get() > 0, "nobody heard that it goes on");
        byte[] json = MachineFile.toJson(machine).getBytes(StandardCharsets.UTF_8);
        assertEquals(machine, MachineFile.parse("here", json));
    }

    /** However many rounds are wanted: one is measured, and no further one begun. */
    @Test
    void timeThatIsUpEndsTheRounds() {
        Effort endless =
                new Effort(
                        "tried",
                        List.of(new long[] {64, 64}),
                        1 << 20,
                        Integer.MAX_VALUE,
                        Duration.ofMillis(1),
                        () -> {});
        Gemm scalar = Gemms.byName("scalar");
        Machine machine = Calibration.measure(type -> scalar, EnumSet.of(DType.FP32), endless);
        assertTrue(machine.engine().knows(DType.FP32));
    }

    @Test
    void theMachineIsMeasuredOnceForAnEngine() {
        Gemm gemm = Gemms.portable();
        Machine first = HostModel.machine(gemm, DType.FP32, () -> {});
        assertSame(first, HostModel.machine(gemm, DType.FP32, () -> {}));
    }

    @Test
    void aTypeThatWasNotMeasuredIsAddedAndTheOthersStay() {
        CoreEngine before = model(DType.FP32);
        CoreEngine after = model(DType.BF16);
        assertTrue(after.knows(DType.BF16));
        assertEquals(before.costs().get(DType.FP32), after.costs().get(DType.FP32));
    }

    /** That of the engine which auto has for the type. */
    private static CoreEngine model(DType type) {
        return (CoreEngine) HostModel.machine(Gemms.auto(type, type), type, () -> {}).engine();
    }
}
