package dev.weft.bench.peers;

import dev.weft.bench.measure.ProductCheck;
import dev.weft.ffi.OpenBlas;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The OpenBLAS that this JVM has loaded, as a peer with threads of its own: how many of them there
 * are is a setting of the whole process, so one case at a time uses it.
 */
public final class OpenBlasLibrary {

    private static final Pattern KERNELS = Pattern.compile("\\((\\S+) kernels\\)");

    private final Path file;

    private OpenBlasLibrary(Path file) {
        this.file = file;
    }

    /** Why there is none, or empty. */
    public static Optional<String> unavailable() throws IOException {
        Optional<String> why = OpenBlas.unavailable();
        return why.isPresent() || loadedFile().isPresent()
                ? why
                : Optional.of("OpenBLAS is loaded, but not from a file called openblas");
    }

    /** Only where it is not {@link #unavailable}. */
    public static OpenBlasLibrary loaded() throws IOException {
        return new OpenBlasLibrary(
                loadedFile().orElseThrow(() -> new IllegalStateException("no OpenBLAS")));
    }

    private static Optional<Path> loadedFile() throws IOException {
        Path maps = Path.of("/proc/self/maps");
        if (!Files.isReadable(maps)) {
            return Optional.empty();
        }
        try (Stream<String> lines = Files.lines(maps)) {
            return lines.filter(line -> line.contains("/"))
                    .map(line -> Path.of(line.substring(line.indexOf('/'))))
                    .filter(path -> path.getFileName().toString().contains("openblas"))
                    .findFirst();
        }
    }

    /** The shared library, for programs that link against the same one. */
    public Path file() {
        return file;
    }

    /** Version and kernels, for example {@code OpenBLAS 0.3.21 SkylakeX}. */
    public String name() {
        return KERNELS.matcher(OpenBlas.describe()).replaceFirst("$1");
    }

    /** The value of OPENBLAS_CORETYPE with which other processes take the same kernels. */
    public Optional<String> coreType() {
        Matcher kernels = KERNELS.matcher(OpenBlas.describe());
        return kernels.find() ? Optional.of(kernels.group(1)) : Optional.empty();
    }

    /** The product as a user of it calls it, with its own threads. Used by one thread. */
    public final class Product implements AutoCloseable {

        private final Arena arena = Arena.ofShared();
        private final Matrix a;
        private final Matrix b;
        private final Matrix c;

        /** Both operands are fp32, without gaps, and stay the caller's. */
        public Product(Matrix a, Matrix b, int threads) {
            this.a = a;
            this.b = b;
            this.c = Matrix.allocate(arena, DType.FP32, a.rows(), b.cols());
            OpenBlas.threads(threads);
            takeNs();
            ProductCheck.require(name(), a, b, c);
        }

        public long takeNs() {
            int m = Math.toIntExact(a.rows());
            int n = Math.toIntExact(b.cols());
            int k = Math.toIntExact(a.cols());
            long aAt = a.data().address();
            long bAt = b.data().address();
            long cAt = c.data().address();
            long startNs = System.nanoTime();
            OpenBlas.sgemm(false, m, n, k, aAt, k, bAt, n, cAt, n);
            return System.nanoTime() - startNs;
        }

        @Override
        public void close() {
            OpenBlas.threads(1);
            arena.close();
        }
    }
}
