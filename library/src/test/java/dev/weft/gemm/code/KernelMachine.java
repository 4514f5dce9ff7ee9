package dev.weft.gemm.code;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.ffi.ExecutableMemory;
import dev.weft.ffi.GuardedMemory;
import dev.weft.ffi.Processor;
import dev.weft.ffi.TileRegisters;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * Runs kernels for one kind of processor: in this process where it is one, otherwise in a program
 * under qemu. Both put each operand right before a page that nobody may touch.
 */
@SuppressWarnings("restricted")
enum KernelMachine {
    X86("amd64", "x86_64-linux-gnu-gcc", "qemu-x86_64", "gcc-x86-64-linux-gnu"),
    A64("aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64", "gcc-aarch64-linux-gnu");

    /** What qemu emulates. */
    private static final List<String> EMULATED = List.of("avx2", "asimd");

    private static final FunctionDescriptor KERNEL =
            FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);

    private final boolean here;
    private final String compiler;
    private final String emulator;
    private final String compilerPackage;

    /** The program that runs kernels under qemu, compiled once. */
    private Path program;

    KernelMachine(String arch, String compiler, String emulator, String compilerPackage) {
        this.here = System.getProperty("os.arch").equals(arch);
        this.compiler = compiler;
        this.emulator = emulator;
        this.compilerPackage = compilerPackage;
    }

    /** Why kernels that need a feature cannot run here, or empty. */
    Optional<String> unavailable(String feature) {
        if (here) {
            return Processor.here().features().contains(feature)
                    ? feature.startsWith("amx") ? TileRegisters.unavailable() : Optional.empty()
                    : Optional.of("this processor has no " + feature);
        }
        if (!EMULATED.contains(feature)) {
            return Optional.of("no " + feature + ": " + emulator + " does not emulate it");
        }
        return List.of(compiler, emulator).stream()
                .filter(name -> !isInstalled(name))
                .findFirst()
                .map(name -> "no %s (Debian: %s qemu-user)".formatted(name, compilerPackage));
    }

    /** C after a call of the function that begins at byte {@code entry} of the code. */
    byte[] run(byte[] code, int entry, byte[] a, byte[] b, byte[] c, long... arguments) {
        ByteBuffer more =
                ByteBuffer.allocate(arguments.length * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        more.asLongBuffer().put(arguments);
        try {
            return here
                    ? runHere(code, entry, a, b, c, more.array())
                    : runEmulated(code, entry, a, b, c, more.array());
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static byte[] runHere(
            byte[] code, int entry, byte[] a, byte[] b, byte[] c, byte[] arguments) {
        try (GuardedMemory memory = new GuardedMemory(GuardedMemory.Flush.WITH_END)) {
            MemorySegment result = copy(memory, c);
            Linker.nativeLinker()
                    .downcallHandle(ExecutableMemory.of(code).entry(entry), KERNEL)
                    .invokeExact(
                            copy(memory, a).address(),
                            copy(memory, b).address(),
                            result.address(),
                            copy(memory, arguments).address());
            return result.asSlice(0, c.length).toArray(JAVA_BYTE);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private static MemorySegment copy(GuardedMemory memory, byte[] bytes) {
        return memory.allocate(bytes.length, 1).copyFrom(MemorySegment.ofArray(bytes));
    }

    private byte[] runEmulated(
            byte[] code, int entry, byte[] a, byte[] b, byte[] c, byte[] arguments)
            throws IOException, InterruptedException {
        Path folder = Files.createTempDirectory("kernel");
        List<String> names = List.of("code", "a", "b", "c", "arguments");
        List<byte[]> contents = List.of(code, a, b, c, arguments);
        for (int i = 0; i < names.size(); i++) {
            Files.write(folder.resolve(names.get(i)), contents.get(i));
        }
        execute(
                List.of(
                        emulator,
                        "-cpu",
                        "max",
                        program().toString(),
                        folder.toString(),
                        Integer.toString(entry)));
        byte[] result = Files.readAllBytes(folder.resolve("c"));
        for (String name : names) {
            Files.delete(folder.resolve(name));
        }
        Files.delete(folder);
        return result;
    }

    private synchronized Path program() throws IOException, InterruptedException {
        if (program == null) {
            try (InputStream source = KernelMachine.class.getResourceAsStream("run-kernel.c")) {
                Path folder = Files.createTempDirectory("run-kernel");
                Path text = folder.resolve("run-kernel.c");
                Path file = folder.resolve("run-kernel");
                Files.copy(source, text);
                execute(
                        List.of(
                                compiler,
                                "-O1",
                                "-static",
                                "-o",
                                file.toString(),
                                text.toString()));
                program = file;
            }
        }
        return program;
    }

    private static void execute(List<String> command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        if (!process.waitFor(60, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new AssertionError(command + " did not end within 60 s");
        }
        if (process.exitValue() != 0) {
            throw new AssertionError(
                    command + " ended with " + process.exitValue() + ": " + output);
        }
    }

    private static boolean isInstalled(String program) {
        return List.of(System.getenv("PATH").split(":")).stream()
                .anyMatch(folder -> Files.isExecutable(Path.of(folder, program)));
    }
}
