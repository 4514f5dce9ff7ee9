package dev.weft.examples.llm;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.fabric.World;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * TinyLlama's weights as fp32, in Weft and in llama.cpp: both continue 20 prompts alike. Needs 10
 * GB of memory and 5 of disk, and some minutes.
 */
@Tag("long")
class TinyLlamaIT {

    private static final int TOKENS = 64;
    private static final List<String> PROMPTS =
            List.of(
                    "The capital of France is",
                    "Once upon a time",
                    "Water boils at",
                    "The quick brown fox",
                    "In the beginning",
                    "A computer is a machine that",
                    "The largest planet of the solar system",
                    "To bake bread, you need",
                    "Yesterday it rained, so",
                    "The theory of relativity",
                    "My favourite book is",
                    "Dogs are loyal animals because",
                    "The stock market fell today",
                    "She opened the door and",
                    "Photosynthesis is the process",
                    "The first president of the United States",
                    "A good night's sleep",
                    "def fibonacci(n):",
                    "Dear Sir or Madam,",
                    "The train leaves at noon from");

    @TempDir Path folder;

    @Test
    void promptsAreContinuedAsByLlamaCpp() throws Exception {
        Path file = folder.resolve("fp32.gguf");
        List<int[]> prompts = new ArrayList<>();
        List<int[]> answers = new ArrayList<>();
        try (Arena arena = Arena.ofShared()) {
            Model model = Model.load(Models.file("tinyllama.gguf"), "fp32", arena);
            GgufWriter.write(model, file);
            PROMPTS.forEach(text -> prompts.add(model.tokenizer().encode(text)));
            answers.addAll(answers(model, prompts));
        }
        int ties = 0;
        try (LlamaCpp llama = new LlamaCpp(file, 2, 128)) {
            for (int i = 0; i < prompts.size(); i++) {
                assertArrayEquals(llama.tokens(PROMPTS.get(i)), prompts.get(i));
                ties += ties(llama, i, prompts.get(i), answers.get(i));
            }
        } finally {
            Files.delete(file);
        }
        IO.println(ties + " near ties in " + prompts.size() + " texts");
    }

    private static List<int[]> answers(Model model, List<int[]> prompts) {
        Generator generator =
                new Generator(model, new Decoder.Capacity(256, prompts.size(), 128, 0));
        List<CompletableFuture<int[]>> answers =
                prompts.stream()
                        .map(
                                prompt ->
                                        generator.submit(
                                                prompt, TOKENS, Sampler.greedy(), token -> {}))
                        .toList();
        generator.close();
        try (World world = World.threads(1)) {
            generator.run(world);
        }
        return answers.stream().map(CompletableFuture::join).toList();
    }

    /**
     * Has llama.cpp read the text that Weft has written. Where it would have gone on with another
     * token, its logits of the two must be all but equal.
     */
    private static int ties(LlamaCpp llama, int number, int[] prompt, int[] answer) {
        int[] all = new int[prompt.length + answer.length];
        System.arraycopy(prompt, 0, all, 0, prompt.length);
        System.arraycopy(answer, 0, all, prompt.length, answer.length);
        llama.clear();
        float[][] logits = llama.each(all);
        int ties = 0;
        for (int i = 0; i < answer.length; i++) {
            float[] after = logits[prompt.length + i - 1];
            int best = 0;
            for (int token = 1; token < after.length; token++) {
                best = after[token] > after[best] ? token : best;
            }
            if (best != answer[i]) {
                assertEquals(
                        after[best],
                        after[answer[i]],
                        1e-3f * Math.abs(after[best]),
                        "text %d, token %d: %d or %d".formatted(number, i, best, answer[i]));
                ties++;
            }
        }
        return ties;
    }
}
