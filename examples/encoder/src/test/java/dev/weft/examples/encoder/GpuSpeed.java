package dev.weft.examples.encoder;

import dev.weft.cuda.Gpu;
import dev.weft.fabric.World;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/**
 * Sentences per second on a GPU, beside PyTorch's operations with the same weights: see README.md.
 * A call takes tokens in host memory and gives embeddings in host memory.
 */
final class GpuSpeed {

    /** Sentences x tokens. */
    private static final int[][] SIZES = {{1, 16}, {1, 128}, {64, 16}, {64, 128}};

    private static final int WARM_UP_ROUNDS = 4;
    private static final int ROUNDS = 9;
    private static final int CALLS = 100;
    private static final int PYTORCH_MINUTES = 5;

    private final Weights weights;
    private final Gpu gpu;

    private GpuSpeed(Weights weights, Gpu gpu) {
        this.weights = weights;
        this.gpu = gpu;
    }

    /**
     * @param args torch_peer.py, and numbers of ranks
     */
    public static void main(String... args) throws Exception {
        try (Arena arena = Arena.ofShared()) {
            GpuSpeed speed = new GpuSpeed(Weights.load(arena), Gpu.open(0));
            System.out.printf(
                    Locale.ROOT,
                    "least cosine similarity with the CPU: %.6f%n",
                    speed.likeTheCpu());
            for (String ranks : Arrays.asList(args).subList(1, args.length)) {
                speed.measure(Integer.parseInt(ranks));
            }
            System.out.println(speed.pytorch(Path.of(args[0]), arena));
        }
    }

    private static List<int[]> sentences(int count, int tokens) {
        Random random = new Random(1);
        return IntStream.range(0, count)
                .mapToObj(number -> random.ints(tokens, 1000, 30_000).toArray())
                .toList();
    }

    private float[][] onGpu(List<int[]> sentences) {
        try (World world = World.threads(1)) {
            return world.call(
                            fabric -> {
                                try (RankEncoder encoder =
                                        RankEncoder.onGpu(fabric, weights, gpu)) {
                                    return encoder.encode(sentences);
                                }
                            })
                    .getFirst();
        }
    }

    private double likeTheCpu() {
        List<int[]> sentences = sentences(64, 16);
        float[][] found = onGpu(sentences);
        return GpuEncoderIT.leastSimilarity(weights, sentences, List.of(found));
    }

    private void measure(int ranks) {
        try (World world = World.threads(ranks)) {
            world.run(
                    fabric -> {
                        try (RankEncoder encoder = RankEncoder.onGpu(fabric, weights, gpu)) {
                            for (int[] size : SIZES) {
                                double median = median(encoder, sentences(size[0], size[1]));
                                if (fabric.rank() == 0) {
                                    System.out.printf(
                                            Locale.ROOT,
                                            "Weft, %d rank(s), %dx%d: %.0f sentences/s%n",
                                            ranks,
                                            size[0],
                                            size[1],
                                            median);
                                }
                            }
                        }
                    });
        }
    }

    private static double median(RankEncoder encoder, List<int[]> sentences) {
        double[] rates = new double[ROUNDS];
        for (int round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
            long start = System.nanoTime();
            for (int call = 0; call < CALLS; call++) {
                encoder.encode(sentences);
            }
            rates[Math.max(0, round)] =
                    sentences.size() * CALLS * 1e9 / (System.nanoTime() - start);
        }
        Arrays.sort(rates);
        return rates[ROUNDS / 2];
    }

    /** What torch_peer.py says. */
    private String pytorch(Path program, Arena arena) throws IOException, InterruptedException {
        Path folder = Files.createTempDirectory("weft-encoder");
        Path file = folder.resolve("encoder.safetensors");
        Path out = folder.resolve("out.txt");
        try {
            MatrixFiles.writeSafetensors(file, tensors(arena));
            Process process =
                    new ProcessBuilder("python3", program.toString(), file.toString())
                            .redirectErrorStream(true)
                            .redirectOutput(out.toFile())
                            .start();
            if (!process.waitFor(PYTORCH_MINUTES, TimeUnit.MINUTES)) {
                process.destroyForcibly().waitFor();
                throw new IOException(
                        "%s does not end in %d minutes".formatted(program, PYTORCH_MINUTES));
            }
            return Files.readString(out, StandardCharsets.UTF_8).strip();
        } finally {
            Files.deleteIfExists(file);
            Files.deleteIfExists(out);
            Files.delete(folder);
        }
    }

    /** All weights, and some sentences with Weft's embeddings; numbers of tokens as fp32, too. */
    private Map<String, Matrix> tensors(Arena arena) {
        Map<String, Matrix> all = new LinkedHashMap<>();
        all.put("words", weights.words());
        all.put("positions", weights.positions());
        all.put("types", weights.types());
        put(all, "norm", weights.embeddingNorm());
        for (int i = 0; i < weights.layers().size(); i++) {
            Weights.Layer layer = weights.layers().get(i);
            put(all, i + ".query", layer.query());
            put(all, i + ".key", layer.key());
            put(all, i + ".value", layer.value());
            put(all, i + ".attention_out", layer.attentionOut());
            put(all, i + ".attention_norm", layer.attentionNorm());
            put(all, i + ".up", layer.up());
            put(all, i + ".down", layer.down());
            put(all, i + ".norm", layer.norm());
        }
        List<int[]> sentences = sentences(64, 128);
        float[][] ids = new float[sentences.size()][];
        for (int i = 0; i < ids.length; i++) {
            int[] sentence = sentences.get(i);
            ids[i] = new float[sentence.length];
            for (int j = 0; j < sentence.length; j++) {
                ids[i][j] = sentence[j];
            }
        }
        all.put("ids", Matrix.copyOf(arena, ids));
        all.put("embeddings", Matrix.copyOf(arena, onGpu(sentences)));
        return all;
    }

    private static void put(Map<String, Matrix> all, String name, Weights.Dense dense) {
        all.put(name + ".weight", dense.weight());
        all.put(name + ".bias", dense.bias());
    }

    private static void put(Map<String, Matrix> all, String name, Weights.Norm norm) {
        all.put(name + ".scale", norm.scale());
        all.put(name + ".shift", norm.shift());
    }
}
