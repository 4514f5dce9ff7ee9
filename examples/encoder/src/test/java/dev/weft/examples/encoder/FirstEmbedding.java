package dev.weft.examples.encoder;

import dev.langchain4j.model.embedding.EmbeddingModel;
import java.io.BufferedReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Measures the time from the start of a JVM to its first embedding: of this example on one rank and
 * on two, and of LangChain4j's own model, which needs {@code -Plangchain4j} when the class path is
 * made. In turns; prints the median of each.
 */
public final class FirstEmbedding {

    private static final int ROUNDS = 9;

    private static final String PEER =
            "dev.langchain4j.model.embedding.onnx.allminilml6v2.AllMiniLmL6V2EmbeddingModel";

    private FirstEmbedding() {}

    /** No argument, or what a child is to embed with. */
    public static void main(String... args) throws Exception {
        if (args.length == 0) {
            measure();
            return;
        }
        EmbeddingModel model =
                args[0].equals("LangChain4j")
                        ? (EmbeddingModel) Class.forName(PEER).getConstructor().newInstance()
                        : WeftEmbeddingModel.threads(Integer.parseInt(args[0]));
        IO.println(model.embed("a pet that is asleep").content().vector()[0]);
        // Its threads need not end first.
        Runtime.getRuntime().halt(0);
    }

    private static void measure() throws Exception {
        List<String> models = List.of("1", "2", "LangChain4j");
        long[][] ms = new long[models.size()][ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            for (int i = 0; i < models.size(); i++) {
                ms[i][round] = ms(models.get(i));
            }
        }
        for (int i = 0; i < models.size(); i++) {
            Arrays.sort(ms[i]);
            IO.println("%-12s %d ms".formatted(models.get(i), ms[i][ROUNDS / 2]));
        }
    }

    private static long ms(String model) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("--enable-native-access=ALL-UNNAMED"));
        command.addAll(List.of("--add-modules", "jdk.incubator.vector"));
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.addAll(List.of(FirstEmbedding.class.getName(), model));
        long began = System.nanoTime();
        Process child =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        try (BufferedReader lines = child.inputReader()) {
            String line = lines.readLine();
            long ms = (System.nanoTime() - began) / 1_000_000;
            if (child.waitFor() != 0 || line == null) {
                throw new IllegalStateException(model + " has printed no embedding");
            }
            return ms;
        }
    }
}
