package dev.weft.cli;

import dev.weft.cuda.Gpu;
import dev.weft.ffi.CublasLt;
import dev.weft.ffi.CudaDevices;
import dev.weft.ffi.Nvrtc;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * What {@code weft doctor} tells of GPUs: a line by label, with the reason where one is missing.
 */
final class GpuFacts {

    private GpuFacts() {}

    static Map<String, String> read() {
        Map<String, String> lines = new LinkedHashMap<>();
        lines.put(
                "CUDA",
                CudaDevices.unavailable()
                        .map(GpuFacts::missing)
                        .orElseGet(() -> "driver for up to CUDA " + driverVersion()));
        for (int gpu = 0; gpu < Gpu.count(); gpu++) {
            lines.put("GPU " + gpu, describe(gpu));
        }
        if (Gpu.count() == 0 && CudaDevices.unavailable().isEmpty()) {
            lines.put("GPU", Gpu.unavailable().orElseThrow());
        }
        lines.put("NVRTC", Nvrtc.unavailable().map(GpuFacts::missing).orElseGet(Nvrtc::version));
        lines.put(
                "cublasLt",
                CublasLt.unavailable().map(GpuFacts::missing).orElseGet(GpuFacts::cublasVersion));
        lines.put("GPU kernels", kernels());
        return lines;
    }

    private static String missing(String why) {
        return "not there, optional: " + why;
    }

    private static String driverVersion() {
        int version = CudaDevices.driverVersion();
        return version / 1000 + "." + version % 1000 / 10;
    }

    private static String cublasVersion() {
        long version = CublasLt.version();
        return version / 10_000 + "." + version / 100 % 100 + "." + version % 100;
    }

    private static String describe(int gpu) {
        return String.format(
                Locale.ROOT,
                "%s, compute capability %d.%d, %.1f GiB, %d multiprocessors, %d copy engines",
                CudaDevices.name(gpu),
                CudaDevices.attribute(gpu, CudaDevices.COMPUTE_MAJOR),
                CudaDevices.attribute(gpu, CudaDevices.COMPUTE_MINOR),
                CudaDevices.totalMemory(gpu) / 0x1p30,
                CudaDevices.attribute(gpu, CudaDevices.MULTIPROCESSORS),
                CudaDevices.attribute(gpu, CudaDevices.COPY_ENGINES));
    }

    private static String kernels() {
        String ready = System.getProperty("weft.cuda.kernels");
        return (ready == null ? "" : "ready ones in " + ready + ", else ")
                + "compiled at first use, kept in "
                + Gpu.kernelCache();
    }
}
