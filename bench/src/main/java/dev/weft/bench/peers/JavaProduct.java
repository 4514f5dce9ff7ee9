package dev.weft.bench.peers;

import dev.weft.bench.measure.Shape;
import dev.weft.files.Folders;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The product as a user of a native library calls it, in a JVM of its own that runs the peer's
 * source. Used by one thread.
 */
public final class JavaProduct implements AutoCloseable {

    private final Path data;
    private final Shape shape;
    private final SteppedProcess process;

    /** A library, and the program that calls it. */
    public enum Library {
        /** Weights in blocks, by the ggml inside llama.cpp. */
        LLAMA(
                "llama.cpp",
                "LlamaProduct.java",
                new PeerJar("de.kherud", "llama", "4.2.0", ""),
                "de/kherud/llama/Linux/" + architecture(),
                List.of("libjllama.so")),

        /** Weights in blocks, by MatMulNBits. */
        ONNX(
                "ONNX Runtime",
                "OnnxProduct.java",
                new PeerJar("com.microsoft.onnxruntime", "onnxruntime", "1.29.0", ""),
                "",
                List.of()),

        /** Weights in fp32, by Intel's MKL. */
        MKL(
                "MKL",
                "MklProduct.java",
                new PeerJar("org.bytedeco", "mkl", "2025.2-1.5.12", "linux-x86_64-redist"),
                "org/bytedeco/mkl/linux-x86_64",
                List.of(
                        "libmkl_rt.so.2",
                        "libmkl_core.so.2",
                        "libmkl_intel_lp64.so.2",
                        "libmkl_intel_thread.so.2",
                        "libmkl_def.so.2",
                        "libmkl_avx2.so.2",
                        "libmkl_avx512.so.2",
                        "libiomp5.so"));

        private final String label;
        private final String program;
        private final PeerJar jar;
        private final String inside;
        private final List<String> files;

        Library(String label, String program, PeerJar jar, String inside, List<String> files) {
            this.label = label;
            this.program = program;
            this.jar = jar;
            this.inside = inside;
            this.files = files;
        }

        private static String architecture() {
            return System.getProperty("os.arch").replace("amd64", "x86_64");
        }

        /** Why it cannot be compared with here, or empty. */
        public Optional<String> unavailable() {
            if (this == MKL && !architecture().equals("x86_64")) {
                return Optional.of("MKL: for x86_64 alone");
            }
            return jar.missing().map(why -> label + ": " + why);
        }

        /** {@code q8_0}, {@code q4_0}, {@code q4_k} or {@code fp32}. */
        public boolean multiplies(String type) {
            return switch (this) {
                case LLAMA -> !type.equals("fp32");
                case ONNX -> type.equals("q8_0") || type.equals("q4_0");
                case MKL -> type.equals("fp32");
            };
        }
    }

    /**
     * Starts one.
     *
     * @param folder where it may write
     * @param a fp32 without gaps
     * @param b fp32, [K, N], without gaps, or the bytes of blocks, [N, K]
     * @param type of b, which the library {@linkplain Library#multiplies multiplies}
     */
    public JavaProduct(
            Library library,
            Path folder,
            Matrix a,
            MemorySegment b,
            Shape shape,
            String type,
            int threads)
            throws IOException, InterruptedException {
        this.shape = shape;
        data = Files.createTempDirectory(folder, "product-");
        write(a.data(), data.resolve("a.bin"));
        write(b, data.resolve("b.bin"));
        Path libraries = folder.resolve("libraries-" + library);
        library.jar.unpack(library.inside, library.files, libraries);
        List<String> command =
                new ArrayList<>(
                        List.of(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "--enable-native-access=ALL-UNNAMED",
                                // It is compiled at each start, and works in native code.
                                "-XX:TieredStopAtLevel=1",
                                "-cp",
                                library.jar.path().toString(),
                                Programs.source(library.program, folder).toString(),
                                data.toString()));
        command.addAll(shape.words());
        command.addAll(List.of(Integer.toString(threads), type, libraries.toString()));
        process =
                SteppedProcess.started(
                        library.label, command, environment(libraries, threads), folder);
    }

    /** Idle threads must not spin while others are measured. */
    private static Map<String, String> environment(Path libraries, int threads) {
        return Map.of(
                "LD_LIBRARY_PATH",
                libraries.toString(),
                "MKL_NUM_THREADS",
                Integer.toString(threads),
                "OMP_WAIT_POLICY",
                "PASSIVE",
                "KMP_BLOCKTIME",
                "0",
                "JAVA_TOOL_OPTIONS",
                "");
    }

    private static void write(MemorySegment from, Path to) throws IOException {
        try (FileChannel file =
                FileChannel.open(to, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            ByteBuffer bytes = from.asByteBuffer();
            while (bytes.hasRemaining()) {
                file.write(bytes);
            }
        }
    }

    /** For example {@code ONNX Runtime 1.29.0}. */
    public String name() {
        return process.ready().replaceFirst("^ready ", "");
    }

    public long takeNs() throws IOException, InterruptedException {
        return Long.parseLong(process.ask("s"));
    }

    /** The latest product, fp32. */
    public Matrix product(Arena arena) throws IOException, InterruptedException {
        process.ask("c");
        Matrix product = Matrix.allocate(arena, DType.FP32, shape.m(), shape.n());
        byte[] bytes = Files.readAllBytes(data.resolve("c.bin"));
        MemorySegment.copy(bytes, 0, product.data(), ValueLayout.JAVA_BYTE, 0, bytes.length);
        return product;
    }

    @Override
    public void close() {
        process.close();
        try {
            Folders.delete(data);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot remove " + data, e);
        }
    }
}
