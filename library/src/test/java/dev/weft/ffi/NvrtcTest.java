package dev.weft.ffi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class NvrtcTest {

    private static final List<String> OPTIONS = List.of("--gpu-architecture=sm_90");

    private static void assumeInstalled() {
        assumeTrue(
                Nvrtc.unavailable().isEmpty(),
                () -> "no NVRTC: " + Nvrtc.unavailable().orElseThrow());
    }

    @Test
    void withoutItEveryUseTellsWhatIsMissingAndHowToGetIt() {
        assumeTrue(Nvrtc.unavailable().isPresent(), "this machine has NVRTC");
        String why = Nvrtc.unavailable().orElseThrow();
        assertTrue(why.contains("libnvrtc.so.13 or libnvrtc.so.12 or libnvrtc.so"), why);
        assertTrue(why.contains("CUDA toolkit"), why);
        assertTrue(why.contains("-Dweft.cuda.nvrtc=PATH or WEFT_NVRTC=PATH"), why);
        var version = assertThrows(IllegalStateException.class, Nvrtc::version);
        assertEquals("libnvrtc: " + why, version.getMessage());
        var compile =
                assertThrows(
                        IllegalStateException.class,
                        () -> Nvrtc.compile("a.cu", "", Map.of(), OPTIONS));
        assertEquals("libnvrtc: " + why, compile.getMessage());
    }

    @Test
    void compilesToMachineCodeWithHeaders() {
        assumeInstalled();
        assertTrue(Nvrtc.version().matches("\\d+\\.\\d+"), Nvrtc.version());
        String source = "#include \"b.h\"\nextern \"C\" __global__ void f(int* p) { *p = VALUE; }";
        byte[] cubin = Nvrtc.compile("a.cu", source, Map.of("b.h", "#define VALUE 42\n"), OPTIONS);
        assertArrayEquals(new byte[] {0x7f, 'E', 'L', 'F'}, Arrays.copyOf(cubin, 4));
    }

    @Test
    void aSourceThatDoesNotCompileIsToldWithTheLog() {
        assumeInstalled();
        var e =
                assertThrows(
                        NativeCallException.class,
                        () -> Nvrtc.compile("a.cu", "nonsense;", Map.of(), OPTIONS));
        assertTrue(e.getMessage().contains("NVRTC_ERROR_COMPILATION"), e.getMessage());
        assertTrue(e.getMessage().contains("nonsense"), e.getMessage());
    }

    @Test
    void anArchitectureWithoutMachineCodeIsRefused() {
        assumeInstalled();
        List<String> options = List.of("--gpu-architecture=compute_90");
        assertThrows(
                IllegalArgumentException.class,
                () -> Nvrtc.compile("a.cu", "__global__ void f() {}", Map.of(), options));
    }
}
