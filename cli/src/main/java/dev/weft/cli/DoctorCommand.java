package dev.weft.cli;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Version;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.kernel.KernelCache;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.fabric.memory.ShmJob;
import dev.weft.ffi.CublasLt;
import dev.weft.ffi.CudaDevices;
import dev.weft.ffi.Futex;
import dev.weft.ffi.Mpi;
import dev.weft.ffi.Nvrtc;
import dev.weft.ffi.OpenBlas;
import dev.weft.files.PrivateFiles;
import dev.weft.gemm.Gemms;
import dev.weft.sim.Machine;
import dev.weft.sim.MachineFile;
import dev.weft.tune.HostModel;
import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import picocli.CommandLine.Command;

/** {@code weft doctor}: what Weft finds on this machine, and why something is missing. */
@Command(
        name = "doctor",
        description =
                "Shows what this machine offers: JDK, vectors, cores, caches, memory, MPI, GPUs and"
                        + " CUDA's libraries, OpenBLAS.",
        footer = {"", "Example:", "  ./weft doctor"})
final class DoctorCommand extends WeftCommand {

    private static final Path CACHES = Path.of("/sys/devices/system/cpu/cpu0/cache");

    @Override
    public Integer call() {
        line("Weft", Version.number());
        line("Java", Runtime.version() + " (" + System.getProperty("java.vendor") + ")");
        line("System", System.getProperty("os.name") + " " + System.getProperty("os.arch"));
        line("Cores", Integer.toString(Runtime.getRuntime().availableProcessors()));
        line("Caches", caches());
        line("Memory", memory());
        line("Product engine", engine());
        line("  for bf16", bf16Engine());
        line("Model for auto", model());
        line("Waiting", Futex.unavailable().map(why -> "polling: " + why).orElse("futex"));
        line("Shared memory", sharedMemory());
        part("MPI", Mpi.unavailable(), () -> Mpi.load().libraryVersion());
        gpus();
        part("OpenBLAS", OpenBlas.unavailable(), OpenBlas::describe);
        return 0;
    }

    private static String engine() {
        String name = Gemms.portable().name();
        return Gemms.nativeUnavailable()
                .map(why -> name + ", slower than machine code: " + why)
                .orElse(name + ", machine code for this processor");
    }

    private static String bf16Engine() {
        return Gemms.amxUnavailable()
                .map(why -> "the same: " + why)
                .orElse("amx, machine code for this processor");
    }

    private static String model() {
        Path file = HostModel.path(type -> Gemms.auto(type, type));
        if (!Files.exists(file)) {
            return "none yet: the first run with auto measures one, ./weft calibrate a better one";
        }
        try {
            Machine machine = MachineFile.readCached(file);
            Duration age =
                    Duration.between(Files.getLastModifiedTime(file).toInstant(), Instant.now());
            return "%s, %s %s ago (%s)"
                    .formatted(
                            machine.description(),
                            String.join("; ", machine.sources()),
                            inWords(age),
                            file);
        } catch (IOException | IllegalArgumentException e) {
            return "not believed: " + e.getMessage();
        }
    }

    private static String inWords(Duration age) {
        if (age.toDays() > 0) {
            return age.toDays() + " days";
        }
        return age.toHours() > 0 ? age.toHours() + " hours" : age.toMinutes() + " minutes";
    }

    private void line(String label, String value) {
        console(false).print("%-16s%s", label + ":", value);
    }

    /** A line about something that Weft can do without. */
    private void part(String label, Optional<String> unavailable, Supplier<String> found) {
        line(label, unavailable.map(why -> "not there, optional: " + why).orElseGet(found));
    }

    private void gpus() {
        part("CUDA", CudaDevices.unavailable(), () -> "driver for up to CUDA " + driverVersion());
        for (int gpu = 0; gpu < Gpu.count(); gpu++) {
            line("GPU " + gpu, describe(gpu));
        }
        if (Gpu.count() == 0 && CudaDevices.unavailable().isEmpty()) {
            line("GPU", Gpu.unavailable().orElseThrow());
        }
        part("NVRTC", Nvrtc.unavailable(), Nvrtc::version);
        part("cublasLt", CublasLt.unavailable(), DoctorCommand::cublasVersion);
        line("GPU kernels", kernels());
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
        int major = CudaDevices.attribute(gpu, CudaDevices.COMPUTE_MAJOR);
        int minor = CudaDevices.attribute(gpu, CudaDevices.COMPUTE_MINOR);
        return text(
                "%s, compute capability %d.%d, %.1f GiB, %d multiprocessors, %d copy engines, %s",
                CudaDevices.name(gpu),
                major,
                minor,
                CudaDevices.totalMemory(gpu) / 0x1p30,
                CudaDevices.attribute(gpu, CudaDevices.MULTIPROCESSORS),
                CudaDevices.attribute(gpu, CudaDevices.COPY_ENGINES),
                kernel(10 * major + minor));
    }

    /** Which kernel runs there, or why none does. */
    private static String kernel(int capability) {
        try {
            return "kernel " + KernelFamily.of(capability).label();
        } catch (IllegalStateException | IllegalArgumentException e) {
            return "no kernel: " + e.getMessage();
        }
    }

    private static String kernels() {
        String ready = System.getProperty("weft.cuda.kernels");
        return (ready == null ? "" : "ready ones in " + ready + ", else ")
                + "compiled at first use, kept in "
                + KernelCache.cacheFolder();
    }

    private static String caches() {
        List<String> found = new ArrayList<>();
        for (int index = 0; index < 8; index++) {
            Path cache = CACHES.resolve("index" + index);
            Optional<String> type = read(cache.resolve("type"));
            Optional<String> size = read(cache.resolve("size"));
            if (type.isPresent() && size.isPresent() && !type.get().equals("Instruction")) {
                found.add("L" + read(cache.resolve("level")).orElse("?") + " " + size.get());
            }
        }
        return found.isEmpty() ? "unknown" : String.join(", ", found);
    }

    private static Optional<String> read(Path file) {
        try {
            return Optional.of(Files.readString(file).strip());
        } catch (IOException e) {
            return Optional.empty();
        }
    }

    private static String memory() {
        var system =
                (com.sun.management.OperatingSystemMXBean)
                        java.lang.management.ManagementFactory.getOperatingSystemMXBean();
        return gib(system.getTotalMemorySize()) + ", " + gib(system.getFreeMemorySize()) + " free";
    }

    private static String sharedMemory() {
        Path folder = ShmJob.sharedMemory();
        try {
            FileStore store = Files.getFileStore(PrivateFiles.guarded(folder));
            String free = folder + ", " + gib(store.getUsableSpace()) + " free";
            return free + (Files.isWritable(folder) ? "" : ", NOT WRITABLE");
        } catch (IOException e) {
            return folder + ": " + e.getMessage();
        }
    }

    private static String gib(long bytes) {
        return text("%.1f GiB", bytes / 0x1p30);
    }
}
