package dev.weft.cli.simulate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import dev.weft.cli.Invocation;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.MachineFile;
import dev.weft.tensor.DType;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CalibrateTest {

    @TempDir Path folder;

    /** To its end, or refused with the reason if this machine lacks the engine. */
    @ParameterizedTest
    @ValueSource(strings = {"auto", "native", "amx", "vector", "scalar", "openblas"})
    void everyEngineIsMeasuredForAllTypesThatItMultiplies(String engine) {
        Path file = folder.resolve("here.json");
        Invocation run =
                Invocation.of(
                        "calibrate", "--quick", "--engine", engine, "--output", file.toString());
        Gemm gemm;
        try {
            DType any = engine.equals("amx") ? DType.BF16 : DType.FP32;
            gemm = Gemms.byName(engine, any, any);
        } catch (IllegalArgumentException | IllegalStateException e) {
            run.assertRefused(e.getMessage());
            assertFalse(Files.exists(file));
            return;
        }
        assertEquals(0, run.code(), run.err());
        run.assertPrints("Kept in " + file);
        CoreEngine cores = (CoreEngine) MachineFile.read(file).engine();
        for (DType type : DType.values()) {
            boolean measured = gemm.multiplies(type) || engine.equals("auto") && !type.isScaled();
            assertEquals(measured, cores.costs().containsKey(type), type.label());
        }
    }
}
