package dev.weft.examples.llm;

import dev.weft.examples.llm.Attention.Row;
import dev.weft.fabric.World;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;

/**
 * Times Weft and llama.cpp on one GGUF file, in turns, each in processes of its own: see README.md.
 * Arguments: the file; then, if wanted, the number of rounds.
 */
public final class Speed {

    private static final int PROMPT = 256;
    private static final int TOKENS = 32;

    private static final String END = "end";

    private Speed() {}

    /** Who is timed: how it is started, and what it answers. */
    private record Contestant(String name, Process process, BufferedReader answers, Path file) {

        static Contestant start(String name, Path folder, List<String> command) throws IOException {
            Path order = folder.resolve(name.replace(' ', '-'));
            Files.writeString(order, "");
            List<String> all = new ArrayList<>(command);
            all.add(order.toString());
            Process process =
                    new ProcessBuilder(all).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            return new Contestant(
                    name, process, process.inputReader(StandardCharsets.UTF_8), order);
        }

        /** All ranks of a contestant read it. */
        void order(String what) throws IOException {
            Path next = file.resolveSibling(file.getFileName() + ".next");
            Files.writeString(next, what);
            Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
        }

        /** Milliseconds of a prompt, and of each token after it. */
        double[] round(int number) throws IOException {
            order("" + number);
            String line = answers.readLine();
            if (line == null) {
                throw new IOException(name + " has ended");
            }
            return Arrays.stream(line.split(" ")).mapToDouble(Double::parseDouble).toArray();
        }
    }

    /** See the class. */
    public static void main(String... args) throws Exception {
        if (args[0].equals("worker")) {
            work(args[1], Path.of(args[2]), Integer.parseInt(args[3]), Path.of(args[4]));
            return;
        }
        Path folder = Files.createTempDirectory("speed");
        int rounds = args.length > 1 ? Integer.parseInt(args[1]) : 9;
        List<Contestant> all = new ArrayList<>();
        for (int threads : new int[] {1, 2}) {
            String count = threads + " thread" + (threads == 1 ? "" : "s");
            all.add(
                    Contestant.start(
                            "llama.cpp " + count, folder, worker("llama", args[0], threads)));
            all.add(Contestant.start("Weft " + count, folder, worker("weft", args[0], threads)));
        }
        List<String> launch =
                new ArrayList<>(
                        List.of(
                                java(),
                                "--enable-native-access=ALL-UNNAMED",
                                "-cp",
                                System.getProperty("java.class.path"),
                                "dev.weft.cli.Main",
                                "launch",
                                "-n",
                                "2",
                                "--"));
        launch.addAll(worker("weft", args[0], 1));
        all.add(Contestant.start("Weft 2 processes", folder, launch));
        double[][][] times = new double[all.size()][2][rounds];
        for (int round = -2; round < rounds; round++) {
            for (int i = 0; i < all.size(); i++) {
                double[] ms = all.get(i).round(round + 3);
                if (round >= 0) {
                    times[i][0][round] = ms[0];
                    times[i][1][round] = ms[1];
                }
            }
        }
        IO.println(
                "%-20s  %d tokens at once, tokens/s      one by one, tokens/s"
                        .formatted("", PROMPT));
        for (int i = 0; i < all.size(); i++) {
            StringBuilder line = new StringBuilder("%-20s".formatted(all.get(i).name()));
            for (int kind = 0; kind < 2; kind++) {
                int tokens = kind == 0 ? PROMPT : 1;
                double[] sorted = times[i][kind].clone();
                Arrays.sort(sorted);
                line.append(
                        "  %7.1f (%.1f to %.1f)"
                                .formatted(
                                        1000 * tokens / sorted[rounds / 2],
                                        1000 * tokens / sorted[rounds - 1],
                                        1000 * tokens / sorted[0]));
            }
            IO.println(line);
        }
        for (Contestant one : all) {
            one.order(END);
            one.process().waitFor();
        }
    }

    private static String java() {
        return Path.of(System.getProperty("java.home"), "bin", "java").toString();
    }

    private static List<String> worker(String kind, String model, int threads) {
        return new ArrayList<>(
                List.of(
                        java(),
                        "--enable-native-access=ALL-UNNAMED",
                        "--add-modules=jdk.incubator.vector",
                        "-Djava.util.concurrent.ForkJoinPool.common.parallelism=" + (threads - 1),
                        "-cp",
                        System.getProperty("java.class.path"),
                        Speed.class.getName(),
                        "worker",
                        kind,
                        model,
                        "" + threads));
    }

    /** Reads a prompt and goes on, in milliseconds. */
    private interface Program {
        double[] run();
    }

    private static void work(String kind, Path model, int threads, Path order) throws Exception {
        int longest = PROMPT + TOKENS;
        int[] prompt = new Random(1).ints(PROMPT, 300, 30_000).toArray();
        if (kind.equals("llama")) {
            try (LlamaCpp llama = new LlamaCpp(model, threads, longest)) {
                answer(
                        order,
                        true,
                        () -> {
                            llama.clear();
                            long start = System.nanoTime();
                            int next = best(llama.next(prompt));
                            long read = System.nanoTime();
                            for (int i = 0; i < TOKENS - 1; i++) {
                                next = best(llama.next(next));
                            }
                            return new double[] {
                                (read - start) / 1e6,
                                (System.nanoTime() - read) / 1e6 / (TOKENS - 1)
                            };
                        });
            }
            return;
        }
        try (Arena arena = Arena.ofShared();
                World world = World.auto(1)) {
            Model weights = Model.load(model, "file", arena);
            world.run(
                    fabric -> {
                        var capacity = new Decoder.Capacity(PROMPT, 1, longest, threads);
                        try (Decoder decoder = Decoder.of(fabric, weights, capacity)) {
                            answer(order, fabric.rank() == 0, () -> run(decoder, prompt));
                        }
                    });
        }
    }

    private static double[] run(Decoder decoder, int[] prompt) {
        Row[] rows = IntStream.range(0, PROMPT).mapToObj(i -> new Row(0, i)).toArray(Row[]::new);
        long start = System.nanoTime();
        int next = best(decoder.call(prompt, rows, PROMPT - 1)[0]);
        long read = System.nanoTime();
        for (int i = 0; i < TOKENS - 1; i++) {
            next = best(decoder.call(new int[] {next}, new Row[] {new Row(0, PROMPT + i)}, 0)[0]);
        }
        return new double[] {(read - start) / 1e6, (System.nanoTime() - read) / 1e6 / (TOKENS - 1)};
    }

    private static int best(float[] logits) {
        int best = 0;
        for (int i = 1; i < logits.length; i++) {
            best = logits[i] > logits[best] ? i : best;
        }
        return best;
    }

    /** Runs once for each number that is written into the file. */
    private static void answer(Path order, boolean prints, Program program) {
        for (int number = 1; ; number++) {
            try {
                String what = "";
                while (!what.equals("" + number)) {
                    Thread.sleep(2);
                    what = Files.readString(order);
                    if (what.equals(END)) {
                        return;
                    }
                }
            } catch (IOException | InterruptedException e) {
                throw new IllegalStateException(e);
            }
            double[] ms = program.run();
            if (prints) {
                IO.println(ms[0] + " " + ms[1]);
            }
        }
    }
}
