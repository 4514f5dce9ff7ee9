package dev.weft.examples.encoder;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;

/**
 * Times Weft and ONNX Runtime, with one thread for each core, in turns: see README.md. Arguments:
 * sentences x tokens, as 64x128; or {@code memory} for what Weft alone needs for batches of all
 * sizes.
 */
public final class Compare {

    private static final int ROUNDS = 9;
    private static final long LEAST_NS = 100_000_000;

    /** ONNX Runtime's threads spin for a while after a call, on the cores of whoever is next. */
    private static final long PAUSE_MS = 300;

    /** Java still compiles for so long, on the cores that are measured. */
    private static final long WARM_UP_NS = 8_000_000_000L;

    private Compare() {}

    /** Prints a line for each number of sentences and tokens. */
    public static void main(String... args) throws Exception {
        int cores = Runtime.getRuntime().availableProcessors();
        if (Arrays.equals(args, new String[] {"memory"})) {
            memory(cores);
            return;
        }
        List<String> sizes =
                args.length == 0 ? List.of("1x16", "1x128", "64x16", "64x128") : List.of(args);
        try (OnnxReference onnx = new OnnxReference(cores);
                WeftEmbeddingModel alone = WeftEmbeddingModel.threads(1);
                WeftEmbeddingModel ranks = WeftEmbeddingModel.threads(cores)) {
            IO.println(
                    "sentences x tokens  ONNX Runtime ms  Weft, 1 rank ms  Weft, %d ranks ms"
                            .formatted(cores));
            for (String size : sizes) {
                String[] parts = size.split("x");
                List<int[]> sentences =
                        random(Integer.parseInt(parts[0]), Integer.parseInt(parts[1]));
                List<Callable<?>> programs =
                        List.of(
                                () -> onnx.encode(sentences),
                                () -> alone.encode(sentences),
                                () -> ranks.encode(sentences));
                double[][] ms = new double[programs.size()][ROUNDS];
                for (Callable<?> program : programs) {
                    time(program, WARM_UP_NS);
                }
                for (int round = 0; round < ROUNDS; round++) {
                    for (int i = 0; i < ms.length; i++) {
                        ms[i][round] = time(programs.get(i), LEAST_NS);
                    }
                }
                StringBuilder line = new StringBuilder("%-18s".formatted(size));
                for (double[] times : ms) {
                    Arrays.sort(times);
                    line.append(
                            "  %8.2f (%.2f to %.2f), %.2fx"
                                    .formatted(
                                            times[ROUNDS / 2],
                                            times[0],
                                            times[ROUNDS - 1],
                                            ms[0][ROUNDS / 2] / times[ROUNDS / 2]));
                }
                IO.println(line);
            }
        }
    }

    private static void memory(int cores) throws Exception {
        try (WeftEmbeddingModel model = WeftEmbeddingModel.threads(cores)) {
            for (int sentences = 1; sentences <= 128; sentences *= 2) {
                model.encode(random(sentences, 16));
            }
            System.gc();
            Files.readAllLines(Path.of("/proc/self/status")).stream()
                    .filter(line -> line.startsWith("VmRSS"))
                    .forEach(IO::println);
        }
    }

    private static List<int[]> random(int sentences, int tokens) {
        Random random = new Random(sentences);
        List<int[]> all = new ArrayList<>();
        for (int i = 0; i < sentences; i++) {
            all.add(random.ints(tokens, 1000, 30_000).toArray());
        }
        return all;
    }

    /** Of one call, in ms. */
    private static double time(Callable<?> program, long leastNs) throws Exception {
        Thread.sleep(PAUSE_MS);
        long start = System.nanoTime();
        long calls = 0;
        do {
            program.call();
            calls++;
        } while (System.nanoTime() - start < leastNs);
        return (System.nanoTime() - start) / 1e6 / calls;
    }
}
