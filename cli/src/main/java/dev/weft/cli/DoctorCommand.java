package dev.weft.cli;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.Version;
import dev.weft.fabric.memory.ShmJob;
import dev.weft.ffi.Futex;
import dev.weft.ffi.Mpi;
import dev.weft.ffi.OpenBlas;
import dev.weft.files.PrivateFiles;
import dev.weft.gemm.Gemms;
import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code weft doctor}: what Weft finds on this machine, and why not where it does not. */
@Command(
        name = "doctor",
        mixinStandardHelpOptions = true,
        description =
                "Shows what this machine offers: JDK, vectors, cores, caches, memory, MPI, GPUs and"
                        + " CUDA's libraries, OpenBLAS.",
        footer = {"", "Example:", "  ./weft doctor"})
final class DoctorCommand implements Callable<Integer> {

    private static final Path CACHES = Path.of("/sys/devices/system/cpu/cpu0/cache");

    @Spec CommandSpec spec;

    @Override
    public Integer call() {
        line("Weft", Version.number());
        line("Java", Runtime.version() + " (" + System.getProperty("java.vendor") + ")");
        line("System", System.getProperty("os.name") + " " + System.getProperty("os.arch"));
        line("Cores", Integer.toString(Runtime.getRuntime().availableProcessors()));
        line("Caches", caches());
        line("Memory", memory());
        line("Product engine", Gemms.auto().name());
        line("Waiting", Futex.unavailable().map(why -> "polling: " + why).orElse("futex"));
        line("Shared memory", sharedMemory());
        line(
                "MPI",
                Mpi.unavailable()
                        .map(why -> "not there, optional: " + why)
                        .orElseGet(() -> Mpi.load().libraryVersion()));
        GpuFacts.read().forEach(this::line);
        line(
                "OpenBLAS",
                OpenBlas.unavailable()
                        .map(why -> "not there, optional: " + why)
                        .orElseGet(OpenBlas::describe));
        return 0;
    }

    private void line(String label, String value) {
        new Console(spec.commandLine().getOut(), false)
                .print(String.format(Locale.ROOT, "%-16s%s", label + ":", value));
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
            return folder
                    + ", "
                    + gib(store.getUsableSpace())
                    + " free"
                    + (Files.isWritable(folder) ? "" : ", NOT WRITABLE");
        } catch (IOException e) {
            return folder + ": " + e.getMessage();
        }
    }

    private static String gib(long bytes) {
        return String.format(Locale.ROOT, "%.1f GiB", bytes / 0x1p30);
    }
}
