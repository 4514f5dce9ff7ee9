package dev.weft.bench.gpu;

import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.peers.Programs;
import dev.weft.bench.peers.SteppedProcess;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * PyTorch on the same GPU, in a Python process, as one of those that take turns. Rows of overlap
 * and ranks that share the GPU use it. Used by one thread.
 */
final class GpuPytorch implements AutoCloseable {

    static final String PRODUCT = "pytorchProduct";
    static final String SEQUENTIAL = "pytorchSequential";
    static final String PIPELINED = "pytorchPipelined";
    static final String GRAPH = "pytorchGraph";
    static final String FUSED = "pytorchFused";
    static final String UNFUSED = "pytorchUnfused";

    private static final String PROGRAM = "gpu_peer.py";

    private final SteppedProcess process;
    private final Consumer<String> out;

    /**
     * @param folder for its source and what it writes to its standard error
     * @param out takes lines: what it refuses
     * @throws IOException with the reason, if there is no Python with PyTorch that sees the GPU
     */
    GpuPytorch(Path folder, Consumer<String> out) throws IOException, InterruptedException {
        this.out = out;
        Path program = Programs.source(PROGRAM, folder);
        List<String> command = List.of("python3", program.toString());
        process = SteppedProcess.started("PyTorch", command, Map.of(), folder);
    }

    /** For example {@code PyTorch 2.11.0}. */
    String name() {
        return process.ready().replaceFirst("^ready ", "");
    }

    /** One rank on the GPU, its peers' rows in pinned memory; false if it refuses. */
    boolean open(DType type, Shards shards, long k, long n)
            throws IOException, InterruptedException {
        String rows =
                IntStream.range(0, shards.ranks())
                        .mapToObj(rank -> Long.toString(shards.rows(rank)))
                        .collect(Collectors.joining(","));
        return does("row %s %d %d %s".formatted(type.label(), k, n, rows));
    }

    /** Ranks that share the GPU, with its own fused operator, bf16; false if it refuses. */
    boolean openFused(int ranks, long m, long k, long n) throws IOException, InterruptedException {
        return does("fused %d %d %d %d".formatted(ranks, m, k, n));
    }

    /** An all-reduce and a norm of ranks on one GPU, bf16; false if it refuses. */
    boolean openNorm(int ranks, long m, long k, long n) throws IOException, InterruptedException {
        return does("norm %d %d %d %d".formatted(ranks, m, k, n));
    }

    /** The wall time of one step of {@link #openNorm}. */
    long takeNormNs() throws IOException, InterruptedException {
        return takeNs("n");
    }

    /** What was opened has no memory from now on. */
    void free() throws IOException, InterruptedException {
        does("free");
    }

    private boolean does(String line) throws IOException, InterruptedException {
        String answer = process.ask(line);
        boolean done = answer.startsWith("ok");
        if (!done) {
            out.accept("     %s, asked for '%s': %s".formatted(name(), line, answer));
        }
        return done;
    }

    /** The turns of {@link #open}. */
    Map<String, Interleaved.Turn> turns() {
        Map<String, Interleaved.Turn> turns = new LinkedHashMap<>();
        turns.put(PRODUCT, () -> takeNs("m"));
        turns.put(SEQUENTIAL, () -> takeNs("s"));
        turns.put(PIPELINED, () -> takeNs("p"));
        return turns;
    }

    /** A launch of a graph of the faster of the last two, captured in the first turn. */
    Map<String, Interleaved.Turn> turnsInGraphs() {
        return Map.of(GRAPH, () -> takeNs("g"));
    }

    /** The wall time of one call of all ranks of {@link #openFused}. */
    long takeFusedNs() throws IOException, InterruptedException {
        return takeNs("f");
    }

    private long takeNs(String what) throws IOException, InterruptedException {
        String answer = process.ask(what);
        try {
            return Long.parseLong(answer);
        } catch (NumberFormatException e) {
            throw new IOException(name() + ": " + answer, e);
        }
    }

    @Override
    public void close() {
        process.close();
    }
}
