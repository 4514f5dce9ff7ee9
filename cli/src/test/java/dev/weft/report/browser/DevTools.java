package dev.weft.report.browser;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;

/**
 * The Chrome DevTools Protocol over a pair of pipes: JSON messages that end in a zero byte. Any
 * thread may call; no call outlasts {@link #LIMIT}. Events are told on the reading thread.
 */
final class DevTools {

    /** Of one command; what the page itself takes is bounded by whoever waits for it. */
    static final Duration LIMIT = Duration.ofSeconds(60);

    private final OutputStream commands;
    private final AtomicInteger lastId = new AtomicInteger();
    private final Map<Integer, CompletableFuture<Object>> answers = new ConcurrentHashMap<>();
    private final Map<String, BiConsumer<String, Object>> listeners = new ConcurrentHashMap<>();
    private volatile IOException ended;

    DevTools(InputStream messages, OutputStream commands) {
        this.commands = commands;
        Thread.ofPlatform().daemon().name("devtools").start(() -> read(messages));
    }

    /** Tells events of a session, by method and parameters, until the browser ends. */
    void listen(String session, BiConsumer<String, Object> listener) {
        listeners.put(session, listener);
    }

    /**
     * The result of one command.
     *
     * @param session of a page; null for the browser as a whole
     */
    Object call(String session, String method, Map<String, ?> parameters) {
        int id = lastId.incrementAndGet();
        CompletableFuture<Object> answer = new CompletableFuture<>();
        answers.put(id, answer);
        Map<String, Object> message = new LinkedHashMap<>();
        message.put("id", id);
        message.put("method", method);
        message.put("params", parameters);
        if (session != null) {
            message.put("sessionId", session);
        }
        try {
            send(Json.write(message));
            return answer.get(LIMIT.toMillis(), TimeUnit.MILLISECONDS);
        } catch (IOException | ExecutionException | TimeoutException e) {
            throw new IllegalStateException(method + " failed: " + e, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(method + " was interrupted", e);
        } finally {
            answers.remove(id);
        }
    }

    private void send(String message) throws IOException {
        synchronized (commands) {
            if (ended != null) {
                throw ended;
            }
            commands.write(message.getBytes(StandardCharsets.UTF_8));
            commands.write(0);
            commands.flush();
        }
    }

    private void read(InputStream messages) {
        IOException end = new IOException("the browser has ended");
        try (messages) {
            byte[] buffer = new byte[1 << 16];
            ByteArrayOutputStream message = new ByteArrayOutputStream();
            for (int count = messages.read(buffer); count >= 0; count = messages.read(buffer)) {
                int start = 0;
                for (int i = 0; i < count; i++) {
                    if (buffer[i] == 0) {
                        message.write(buffer, start, i - start);
                        take(Json.parse(message.toString(StandardCharsets.UTF_8)));
                        message.reset();
                        start = i + 1;
                    }
                }
                message.write(buffer, start, count - start);
            }
        } catch (IOException | RuntimeException e) {
            end.initCause(e);
        }
        // Before the answers: a command that is sent from now on finds it.
        synchronized (commands) {
            ended = end;
        }
        answers.values().forEach(answer -> answer.completeExceptionally(end));
    }

    private void take(Object message) {
        if (Json.at(message, "id") instanceof Long id) {
            CompletableFuture<Object> answer = answers.get(id.intValue());
            if (answer == null) {
                return;
            }
            if (Json.at(message, "error") == null) {
                answer.complete(Json.at(message, "result"));
            } else {
                answer.completeExceptionally(new IOException(message.toString()));
            }
        } else if (Json.at(message, "sessionId") instanceof String session
                && listeners.containsKey(session)) {
            listeners.get(session).accept(Json.text(message, "method"), Json.at(message, "params"));
        }
    }
}
