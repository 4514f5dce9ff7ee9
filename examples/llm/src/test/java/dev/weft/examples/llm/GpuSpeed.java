package dev.weft.examples.llm;

import dev.weft.cuda.Gpu;
import dev.weft.examples.llm.Attention.Row;
import dev.weft.fabric.World;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/**
 * Tokens per second on a GPU, beside PyTorch's operations with weights of the same shapes: see
 * README.md.
 */
final class GpuSpeed {

    private static final int ROUNDS = 5;

    private final Model model;
    private final int prompt;
    private final int tokens;

    private GpuSpeed(Model model) {
        this.model = model;
        this.prompt = Math.min(256, model.shape().longest() / 2);
        this.tokens = prompt / 2;
    }

    /**
     * @param args the model, torch_peer.py, and numbers of ranks
     */
    public static void main(String... args) throws Exception {
        try (Arena arena = Arena.ofShared()) {
            Model model = Model.load(Path.of(args[0]), "fp32", arena);
            GpuSpeed speed = new GpuSpeed(model);
            Gpu gpu = Gpu.open(0);
            System.out.printf(
                    Locale.ROOT,
                    "logits differ from the CPU's by %.4f of the largest%n",
                    difference(speed.logits(null), speed.logits(gpu)));
            for (String ranks : Arrays.asList(args).subList(2, args.length)) {
                double[] own = speed.measured(gpu, Integer.parseInt(ranks));
                System.out.printf(
                        Locale.ROOT,
                        "Weft, %s rank(s): %d tokens at once %.0f/s, one by one %.0f/s%n",
                        ranks,
                        speed.prompt,
                        own[0],
                        own[1]);
            }
            System.out.println("PyTorch: at once, one by one, as a graph: " + speed.pytorch(args));
        }
    }

    /** After each of some tokens, on a GPU or, if that is null, on the CPU. */
    private float[][] logits(Gpu gpu) {
        int[] ids = IntStream.range(1000, 1016).toArray();
        try (World world = World.threads(1)) {
            return world.call(
                            fabric -> {
                                Decoder.Capacity capacity =
                                        new Decoder.Capacity(ids.length, 1, ids.length, 0);
                                try (Decoder decoder = Decoder.of(fabric, model, capacity, gpu)) {
                                    int[] all = IntStream.range(0, ids.length).toArray();
                                    return decoder.call(ids, rows(0, ids.length), all);
                                }
                            })
                    .getFirst();
        }
    }

    private static double difference(float[][] one, float[][] other) {
        double worst = 0;
        for (int i = 0; i < one.length; i++) {
            double most = 0;
            double off = 0;
            for (int token = 0; token < one[i].length; token++) {
                most = Math.max(most, Math.abs(one[i][token]));
                off = Math.max(off, Math.abs(one[i][token] - other[i][token]));
            }
            worst = Math.max(worst, off / most);
        }
        return worst;
    }

    private double[] measured(Gpu gpu, int ranks) {
        try (World world = World.threads(ranks)) {
            return world.call(
                            fabric -> {
                                Decoder.Capacity capacity =
                                        new Decoder.Capacity(prompt, 1, prompt + tokens, 1);
                                try (Decoder decoder = Decoder.of(fabric, model, capacity, gpu)) {
                                    return measured(decoder);
                                }
                            })
                    .getFirst();
        }
    }

    private double[] measured(Decoder decoder) {
        int[] ids = IntStream.range(1, prompt + 1).toArray();
        double[] read = new double[ROUNDS];
        double[] chosen = new double[ROUNDS];
        for (int round = -1; round < ROUNDS; round++) {
            long start = System.nanoTime();
            int next = likeliest(decoder.call(ids, rows(0, prompt), prompt - 1)[0]);
            long begun = System.nanoTime();
            for (int i = 0; i < tokens; i++) {
                next = likeliest(decoder.call(new int[] {next}, rows(prompt + i, 1), 0)[0]);
            }
            read[Math.max(0, round)] = prompt * 1e9 / (begun - start);
            chosen[Math.max(0, round)] = tokens * 1e9 / (System.nanoTime() - begun);
        }
        Arrays.sort(read);
        Arrays.sort(chosen);
        return new double[] {read[ROUNDS / 2], chosen[ROUNDS / 2]};
    }

    private static Row[] rows(int first, int count) {
        return IntStream.range(first, first + count)
                .mapToObj(place -> new Row(0, place))
                .toArray(Row[]::new);
    }

    private static int likeliest(float[] logits) {
        int best = 0;
        for (int i = 1; i < logits.length; i++) {
            best = logits[i] > logits[best] ? i : best;
        }
        return best;
    }

    private String pytorch(String... args) throws IOException, InterruptedException {
        Shape shape = model.shape();
        List<String> command = new ArrayList<>(List.of("python3", args[1]));
        for (int number :
                new int[] {
                    shape.width(),
                    shape.hidden(),
                    shape.layers(),
                    shape.heads(),
                    shape.keyHeads(),
                    shape.vocabulary(),
                    prompt,
                    tokens
                }) {
            command.add("" + number);
        }
        Path out = Files.createTempFile("torch", ".txt");
        try {
            new ProcessBuilder(command)
                    .redirectErrorStream(true)
                    .redirectOutput(out.toFile())
                    .start()
                    .waitFor();
            return Files.readString(out, StandardCharsets.UTF_8).strip();
        } finally {
            Files.delete(out);
        }
    }
}
