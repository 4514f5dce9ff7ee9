package dev.weft.examples.encoder;

import dev.langchain4j.data.embedding.Embedding;
import dev.langchain4j.data.segment.TextSegment;
import dev.langchain4j.model.embedding.EmbeddingModel;
import dev.langchain4j.store.embedding.CosineSimilarity;
import dev.weft.cuda.Gpu;
import java.io.IOException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Prints which of some sentences mean most nearly what a question does: see README.md. */
public final class Search {

    private static final List<String> SENTENCES =
            List.of(
                    "The cat sleeps on the warm windowsill.",
                    "Stock prices fell sharply on Monday.",
                    "She plays the violin in the city orchestra.",
                    "A kitten dozes in the sun.",
                    "The central bank raised interest rates again.",
                    "Bread needs flour, water, salt and time.",
                    "The train to the coast leaves at noon.",
                    "He tuned his guitar before the concert.");

    private Search() {}

    /** Takes a question; without one, asks for a pet that sleeps. */
    public static void main(String... args) throws IOException {
        try {
            run(args);
        } catch (IllegalArgumentException | IllegalStateException e) {
            System.err.println("search: " + e.getMessage());
            System.exit(2);
        }
    }

    static void run(String... args) throws IOException {
        boolean onGpu = args.length > 0 && args[0].equals("--gpu");
        List<String> words = Arrays.asList(args).subList(onGpu ? 1 : 0, args.length);
        if (!words.isEmpty() && words.getFirst().startsWith("--")) {
            throw new IllegalArgumentException(
                    "'%s': usage: Search [--gpu] [QUESTION]".formatted(words.getFirst()));
        }
        String question = words.isEmpty() ? "a pet that is asleep" : String.join(" ", words);
        try (WeftEmbeddingModel model = onGpu ? onGpu() : WeftEmbeddingModel.auto(2)) {
            List<String> found = found(model, question);
            if (model.isFirstRank()) {
                found.forEach(IO::println);
            }
        }
    }

    private static WeftEmbeddingModel onGpu() throws IOException {
        Gpu.unavailable()
                .ifPresent(
                        why -> {
                            throw new IllegalArgumentException("--gpu: " + why);
                        });
        return WeftEmbeddingModel.gpu(1);
    }

    /** Nothing here knows which model it is. */
    private static List<String> found(EmbeddingModel model, String question) {
        List<Embedding> all =
                model.embedAll(
                                Stream.concat(Stream.of(question), SENTENCES.stream())
                                        .map(TextSegment::from)
                                        .toList())
                        .content();
        record Found(double similarity, String sentence) {}
        return IntStream.range(0, SENTENCES.size())
                .mapToObj(
                        i ->
                                new Found(
                                        CosineSimilarity.between(all.getFirst(), all.get(i + 1)),
                                        SENTENCES.get(i)))
                .sorted(Comparator.comparingDouble(found -> -found.similarity()))
                .map(found -> "%.3f  %s".formatted(found.similarity(), found.sentence()))
                .toList();
    }
}
