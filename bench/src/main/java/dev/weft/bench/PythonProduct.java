package dev.weft.bench;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** The product as a user of NumPy or PyTorch calls it, in a Python process. Used by one thread. */
final class PythonProduct implements AutoCloseable {

    static final String PROGRAM = "product_peer.py";

    private static final Duration START = Duration.ofSeconds(60);
    private static final Duration STEP = Duration.ofSeconds(120);

    private final SteppedProcess process;
    private final String name;

    /**
     * @param module {@code numpy} or {@code torch}
     */
    PythonProduct(String module, Path program, Path folder, Shape shape, int threads)
            throws IOException, InterruptedException {
        List<String> command =
                List.of(
                        "python3",
                        program.toString(),
                        module,
                        Long.toString(shape.m()),
                        Long.toString(shape.n()),
                        Long.toString(shape.k()),
                        Integer.toString(threads));
        process = new SteppedProcess(module, command, environment(threads), folder);
        try {
            // "ready NumPy 2.4.6"
            String[] words = process.ready(START).split(" ");
            name = words[1] + " " + words[2];
        } catch (Throwable e) {
            process.close();
            throw e;
        }
    }

    /** The library as installed, but its idle threads must not spin while others are measured. */
    private static Map<String, String> environment(int threads) {
        String count = Integer.toString(threads);
        return Map.of(
                "OPENBLAS_NUM_THREADS",
                count,
                "OMP_NUM_THREADS",
                count,
                "MKL_NUM_THREADS",
                count,
                "OPENBLAS_CORETYPE",
                "",
                "OPENBLAS_THREAD_TIMEOUT",
                "4",
                "OMP_WAIT_POLICY",
                "PASSIVE",
                "KMP_BLOCKTIME",
                "0");
    }

    /** For example {@code NumPy 2.4.6}. */
    String name() {
        return name;
    }

    long takeNs() throws IOException, InterruptedException {
        return Long.parseLong(process.ask("s", STEP));
    }

    /** The weighted sum of the latest product. */
    double checksum() throws IOException, InterruptedException {
        return Double.parseDouble(process.ask("c", STEP));
    }

    @Override
    public void close() {
        process.close();
    }
}
