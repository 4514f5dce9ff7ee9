package dev.weft.examples.llm;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.langchain4j.data.message.AiMessage;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.model.chat.request.ChatRequest;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.output.FinishReason;
import dev.weft.fabric.World;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Texts that are continued, alone and at the same time. */
class GeneratorIT {

    private static final Arena ARENA = Arena.ofShared();
    private static final String START = "Once upon a time";
    private static final String STORY =
            ", there was a little girl named Lily. She loved to play outside in the sunshine.";
    private static final int MOST = 21;
    private static Model model;

    @TempDir Path folder;

    @BeforeAll
    static void load() throws Exception {
        model = Models.stories("fp32", ARENA);
    }

    @AfterAll
    static void free() {
        ARENA.close();
    }

    private static Decoder.Capacity capacity(int rows, int chats) {
        return new Decoder.Capacity(rows, chats, 64, 0);
    }

    private static int[] prompt(String text) {
        return model.tokenizer().encode(text);
    }

    /** What a program does while the ranks run. */
    private static void with(int ranks, Generator generator, Runnable program) throws Exception {
        try (World world = World.threads(ranks)) {
            CompletableFuture<Void> running =
                    CompletableFuture.runAsync(() -> generator.run(world));
            try {
                program.run();
            } finally {
                generator.close();
                running.get(1, TimeUnit.MINUTES);
            }
        }
    }

    private static CompletableFuture<int[]> submit(Generator generator, String text) {
        return generator.submit(prompt(text), MOST, Sampler.greedy(), token -> {});
    }

    @Test
    void aStoryIsTold() throws Exception {
        Generator generator = new Generator(model, capacity(64, 1));
        with(
                1,
                generator,
                () -> {
                    List<Integer> heard = new ArrayList<>();
                    int[] tokens =
                            generator
                                    .submit(prompt(START), MOST, Sampler.greedy(), heard::add)
                                    .join();
                    assertEquals(STORY, model.tokenizer().decode(tokens));
                    assertArrayEquals(tokens, heard.stream().mapToInt(Integer::intValue).toArray());
                });
    }

    /** More texts than places, and prompts that do not fit a call. */
    @Test
    void aTextDoesNotDependOnOthers() throws Exception {
        List<String> texts =
                List.of(
                        START,
                        "The dog",
                        "Tom and Lily went to the park. They saw a big",
                        "A",
                        START);
        List<int[]> alone = new ArrayList<>();
        Generator one = new Generator(model, capacity(64, 1));
        with(1, one, () -> texts.forEach(text -> alone.add(submit(one, text).join())));
        Generator many = new Generator(model, capacity(5, 3));
        with(
                2,
                many,
                () -> {
                    List<CompletableFuture<int[]>> answers =
                            texts.stream().map(text -> submit(many, text)).toList();
                    for (int i = 0; i < alone.size(); i++) {
                        assertArrayEquals(alone.get(i), answers.get(i).join(), texts.get(i));
                    }
                });
    }

    @Test
    void samplersWithOneSeedChooseTheSame() throws Exception {
        Generator generator = new Generator(model, capacity(64, 2));
        with(
                1,
                generator,
                () -> {
                    List<CompletableFuture<int[]>> answers =
                            List.of(7L, 7L, 8L).stream()
                                    .map(
                                            seed ->
                                                    generator.submit(
                                                            prompt(START),
                                                            MOST,
                                                            Sampler.random(0.9, 0.95, seed),
                                                            token -> {}))
                                    .toList();
                    assertArrayEquals(answers.get(0).join(), answers.get(1).join());
                    assertTrue(!Arrays.equals(answers.get(0).join(), answers.get(2).join()));
                });
    }

    @Test
    void aChatThatGoesOnIsNotReadAgain() throws Exception {
        Generator generator = new Generator(model, capacity(64, 2));
        with(
                1,
                generator,
                () -> {
                    int[] first = prompt(START);
                    int[] answer = submit(generator, START).join();
                    int[] whole = Arrays.copyOf(first, first.length + answer.length);
                    System.arraycopy(answer, 0, whole, first.length, answer.length);
                    // The last token of the answer was chosen, but nothing was computed of it.
                    assertEquals(whole.length - 1, generator.computed());
                    generator.submit(whole, 1, Sampler.greedy(), token -> {}).join();
                    assertEquals(whole.length, generator.computed());
                });
    }

    @Test
    void aTextEndsAtTheLongest() throws Exception {
        Generator generator = new Generator(model, capacity(64, 1));
        int[] prompt = prompt(START);
        with(
                1,
                generator,
                () ->
                        assertEquals(
                                64 - prompt.length + 1,
                                generator
                                        .submit(prompt, 100, Sampler.greedy(), token -> {})
                                        .join()
                                        .length));
        assertThrows(
                IllegalArgumentException.class,
                () -> generator.submit(new int[65], 1, Sampler.greedy(), token -> {}));
    }

    @Test
    void aListenerThatThrowsEndsItsTextAlone() throws Exception {
        Generator generator = new Generator(model, capacity(64, 2));
        with(
                1,
                generator,
                () -> {
                    CompletableFuture<int[]> wrong =
                            generator.submit(
                                    prompt(START),
                                    MOST,
                                    Sampler.greedy(),
                                    token -> {
                                        throw new IllegalStateException("no ear");
                                    });
                    CompletableFuture<int[]> right = submit(generator, START);
                    assertEquals(STORY, model.tokenizer().decode(right.join()));
                    CompletionException e = assertThrows(CompletionException.class, wrong::join);
                    assertEquals("no ear", e.getCause().getMessage());
                });
        assertThrows(CancellationException.class, () -> submit(generator, START).join());
    }

    @Test
    void aChatModelOfLangChain4jAnswersAtOnceAndAsItComes() throws Exception {
        Path file = folder.resolve("chat.gguf");
        GgufWriter.write(Models.chatty(ARENA), file);
        try (WeftChatModel chat = WeftChatModel.threads(file, "file", 2)) {
            ChatRequest request =
                    ChatRequest.builder()
                            .messages(
                                    UserMessage.from("Once"),
                                    AiMessage.from("upon a time"),
                                    UserMessage.from("there was a dog"))
                            .maxOutputTokens(MOST)
                            .build();
            CompletableFuture<ChatResponse> streamed = new CompletableFuture<>();
            StringBuilder parts = new StringBuilder();
            chat.streaming()
                    .chat(
                            request,
                            new StreamingChatResponseHandler() {
                                @Override
                                public void onPartialResponse(String part) {
                                    parts.append(part);
                                }

                                @Override
                                public void onCompleteResponse(ChatResponse response) {
                                    streamed.complete(response);
                                }

                                @Override
                                public void onError(Throwable e) {
                                    streamed.completeExceptionally(e);
                                }
                            });
            ChatResponse whole = chat.chat().chat(request);
            assertEquals(FinishReason.LENGTH, whole.finishReason());
            assertEquals(MOST, whole.tokenUsage().outputTokenCount());
            String text = streamed.get(1, TimeUnit.MINUTES).aiMessage().text();
            assertEquals(whole.aiMessage().text(), text);
            assertEquals(text, parts.toString());
            assertTrue(text.contains(" "), text);
        }
    }

    @Test
    void aModelWithoutATemplateDoesNotChat() throws Exception {
        try (WeftChatModel chat = WeftChatModel.threads(Models.stories(), "fp32", 1)) {
            IllegalArgumentException e =
                    assertThrows(IllegalArgumentException.class, () -> chat.chat().chat("Hello"));
            assertEquals(
                    "the model has no chat template: it continues texts, but does not chat",
                    e.getMessage());
        }
    }
}
