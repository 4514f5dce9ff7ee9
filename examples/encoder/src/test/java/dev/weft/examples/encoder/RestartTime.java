package dev.weft.examples.encoder;

import dev.weft.fabric.FabricException;
import java.io.BufferedReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/**
 * Measures the time from the kill of one of two rank processes to the next right embedding of the
 * other one, five times in one start of {@code weft launch --restarts}. Prints each and the median.
 */
public final class RestartTime {

    private static final int KILLS = 5;

    private RestartTime() {}

    /** Argument: the deadline, or {@code rank} for what a rank runs. */
    public static void main(String... args) throws Exception {
        if (args[0].equals("rank")) {
            rank();
        } else {
            measure(args[0]);
        }
    }

    private static void rank() throws Exception {
        List<int[]> sentence = List.of(new Random(1).ints(16, 1000, 30_000).toArray());
        float[] expected = null;
        // Rank 1 is the one that is replaced: what it does before it joins would count.
        if (System.getenv("WEFT_RANK").equals("0")) {
            try (WeftEmbeddingModel alone = WeftEmbeddingModel.threads(1)) {
                expected = alone.encode(sentence)[0];
            }
        }
        WeftEmbeddingModel model = WeftEmbeddingModel.auto(2);
        long pid = ProcessHandle.current().pid();
        while (true) {
            try {
                float[] embedding = model.encode(sentence)[0];
                boolean right = expected == null || Arrays.equals(expected, embedding);
                IO.println(System.getenv("WEFT_RANK") + " " + pid + (right ? " right" : " wrong"));
                Thread.sleep(5);
            } catch (FabricException e) {
                long began = System.nanoTime();
                model.renew();
                long ms = (System.nanoTime() - began) / 1_000_000;
                IO.println(System.getenv("WEFT_RANK") + " " + pid + " renewed in " + ms + " ms");
            }
        }
    }

    private static void measure(String deadline) throws Exception {
        List<String> command = java();
        command.addAll(List.of("dev.weft.cli.Main", "launch", "-n", "2", "--deadline", deadline));
        command.addAll(List.of("--restarts", Integer.toString(KILLS), "--"));
        command.addAll(java());
        command.addAll(List.of(RestartTime.class.getName(), "rank"));
        Process launch =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        long[] ms = new long[KILLS];
        try (BufferedReader lines = launch.inputReader()) {
            long killed = 0;
            for (int kill = 0; kill < KILLS; kill++) {
                long victim = next(lines, "1 ", killed);
                ProcessHandle.of(victim).orElseThrow().destroyForcibly();
                long began = System.nanoTime();
                // Skips what rank 0 had printed before: the new rank 1 answers in the new world.
                next(lines, "1 ", victim);
                next(lines, "0 ", 0);
                ms[kill] = (System.nanoTime() - began) / 1_000_000;
                killed = victim;
                IO.println("next right embedding after " + ms[kill] + " ms");
            }
        } finally {
            launch.destroy();
            launch.waitFor();
        }
        Arrays.sort(ms);
        IO.println("median " + ms[KILLS / 2] + " ms, deadline " + deadline);
    }

    /** Reads on to a right embedding of this rank by another process; returns the process. */
    private static long next(BufferedReader lines, String rank, long otherThan) throws Exception {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.endsWith(" wrong")) {
                throw new IllegalStateException("wrong embedding: " + line);
            }
            if (line.contains("renewed")) {
                IO.println(line);
            }
            long pid = Long.parseLong(line.split(" ")[1]);
            if (line.startsWith(rank) && line.endsWith(" right") && pid != otherThan) {
                return pid;
            }
        }
        throw new IllegalStateException("the ranks have ended");
    }

    private static List<String> java() {
        return new ArrayList<>(
                List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:+UseSerialGC",
                        "--enable-native-access=ALL-UNNAMED",
                        "--add-modules",
                        "jdk.incubator.vector",
                        "-cp",
                        System.getProperty("java.class.path")));
    }
}
