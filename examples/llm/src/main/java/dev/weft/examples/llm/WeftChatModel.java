package dev.weft.examples.llm;

import dev.langchain4j.data.message.AiMessage;
import dev.langchain4j.data.message.ChatMessage;
import dev.langchain4j.data.message.SystemMessage;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.exception.UnsupportedFeatureException;
import dev.langchain4j.model.ModelProvider;
import dev.langchain4j.model.chat.ChatModel;
import dev.langchain4j.model.chat.StreamingChatModel;
import dev.langchain4j.model.chat.request.ChatRequest;
import dev.langchain4j.model.chat.request.ChatRequestParameters;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.output.FinishReason;
import dev.langchain4j.model.output.TokenUsage;
import dev.weft.fabric.World;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/**
 * A language model on Weft, for LangChain4j: answers at once, or as they come. Any thread may call
 * it; chats of several threads are answered at the same time. An answer is the same on any number
 * of ranks, and whatever else is asked. Without a temperature in the request it is greedy.
 */
public final class WeftChatModel implements AutoCloseable {

    private static final int ROWS = 256;
    private static final int CHATS = 8;
    private static final int MOST_TOKENS = 512;
    private static final int LONGEST = 8192;
    private static final long SEED = 1;

    private final Arena arena = Arena.ofShared();
    private final World world;
    private final Model model;
    private final Generator generator;
    private final Thread runner;
    private final String name;
    private final int longest;

    private WeftChatModel(Path file, String weights, int ranks) throws IOException {
        name = file.getFileName().toString();
        try {
            model = Model.load(file, weights, arena);
            world = World.threads(ranks);
        } catch (Throwable e) {
            arena.close();
            throw e;
        }
        longest = Math.min(LONGEST, model.shape().longest());
        generator = new Generator(model, new Decoder.Capacity(ROWS, CHATS, longest, 0));
        runner = Thread.ofPlatform().name("weft-chat").start(() -> generator.run(world));
    }

    /**
     * On so many threads of this process.
     *
     * @param weights as for {@link Model#load}
     */
    public static WeftChatModel threads(Path file, String weights, int ranks) throws IOException {
        return new WeftChatModel(file, weights, ranks);
    }

    /** Answers when they are complete. */
    public ChatModel chat() {
        return new ChatModel() {
            @Override
            public ChatResponse doChat(ChatRequest request) {
                try {
                    return answer(request, text -> {}).join();
                } catch (CompletionException e) {
                    throw e.getCause() instanceof RuntimeException cause ? cause : e;
                }
            }

            @Override
            public ModelProvider provider() {
                return ModelProvider.OTHER;
            }
        };
    }

    /** Answers as they come. */
    public StreamingChatModel streaming() {
        return new StreamingChatModel() {
            /** The handler runs in threads of its own: rank 0 must not wait for it. */
            @Override
            public void doChat(ChatRequest request, StreamingChatResponseHandler handler) {
                AtomicReference<CompletableFuture<Void>> told =
                        new AtomicReference<>(CompletableFuture.completedFuture(null));
                Consumer<String> tell =
                        text ->
                                told.set(
                                        told.get()
                                                .thenRunAsync(
                                                        () -> handler.onPartialResponse(text),
                                                        Thread::startVirtualThread));
                // What the handler throws at the end, nobody can be told.
                var unused =
                        answer(request, tell)
                                .thenCompose(response -> told.get().thenApply(none -> response))
                                .whenCompleteAsync(
                                        (response, e) -> {
                                            if (e == null) {
                                                handler.onCompleteResponse(response);
                                            } else {
                                                handler.onError(e);
                                            }
                                        },
                                        Thread::startVirtualThread);
            }

            @Override
            public ModelProvider provider() {
                return ModelProvider.OTHER;
            }
        };
    }

    private CompletableFuture<ChatResponse> answer(ChatRequest request, Consumer<String> listener) {
        ChatRequestParameters wanted = request.parameters();
        if (!wanted.toolSpecifications().isEmpty() || wanted.responseFormat() != null) {
            throw new UnsupportedFeatureException(
                    "tools and formats of responses: this model answers with text");
        }
        int[] prompt = Chat.tokens(model.tokenizer(), messages(request.messages()));
        int most = wanted.maxOutputTokens() == null ? MOST_TOKENS : wanted.maxOutputTokens();
        Double temperature = wanted.temperature();
        double share = wanted.topP() == null ? 1 : wanted.topP();
        Sampler sampler =
                temperature == null || temperature == 0
                        ? Sampler.greedy()
                        : Sampler.random(temperature, share, SEED);
        Tokenizer tokenizer = model.tokenizer();
        Tokenizer.Text text = tokenizer.new Text(true);
        return generator
                .submit(
                        prompt,
                        most,
                        sampler,
                        token -> {
                            String more = text.next(token);
                            if (!more.isEmpty()) {
                                listener.accept(more);
                            }
                        })
                .thenApply(
                        tokens ->
                                ChatResponse.builder()
                                        .aiMessage(AiMessage.from(tokenizer.decode(tokens)))
                                        .modelName(name)
                                        .tokenUsage(new TokenUsage(prompt.length, tokens.length))
                                        .finishReason(
                                                tokens.length == most
                                                                || prompt.length + tokens.length
                                                                        > longest
                                                        ? FinishReason.LENGTH
                                                        : FinishReason.STOP)
                                        .build());
    }

    private static List<Chat.Message> messages(List<ChatMessage> messages) {
        return messages.stream()
                .map(
                        message ->
                                switch (message) {
                                    case SystemMessage system ->
                                            new Chat.Message("system", system.text());
                                    case UserMessage user ->
                                            new Chat.Message("user", user.singleText());
                                    case AiMessage answer ->
                                            new Chat.Message("assistant", answer.text());
                                    default ->
                                            throw new UnsupportedFeatureException(
                                                    "a message of type " + message.type());
                                })
                .toList();
    }

    /** Answers what was asked, and ends. */
    @Override
    public void close() {
        generator.close();
        boolean interrupted = false;
        while (true) {
            try {
                runner.join();
                break;
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        world.close();
        arena.close();
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
