package dev.weft.bench.peers;

import dev.weft.bench.measure.Shape;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The product as a user of NumPy or PyTorch calls it, in a Python process. Used by one thread. */
public final class PythonProduct implements AutoCloseable {

    public static final String PROGRAM = "product_peer.py";

    private final SteppedProcess process;
    private final String name;

    /**
     * @param module {@code numpy}, which has fp32 alone, or {@code torch}
     * @param type of A, B and the product: fp32 or bf16
     */
    public PythonProduct(
            String module, Path program, Path folder, Shape shape, DType type, int threads)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("python3", program.toString(), module));
        command.addAll(shape.words());
        command.addAll(List.of(Integer.toString(threads), type.label()));
        process = SteppedProcess.started(module, command, environment(threads), folder);
        // "ready NumPy 2.4.6"
        name = process.ready().replaceFirst("^ready ", "");
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
    public String name() {
        return name;
    }

    public long takeNs() throws IOException, InterruptedException {
        return Long.parseLong(process.ask("s"));
    }

    /** The weighted sum of the latest product. */
    public double checksum() throws IOException, InterruptedException {
        return Double.parseDouble(process.ask("c"));
    }

    @Override
    public void close() {
        process.close();
    }
}
