package dev.weft.examples.service;

import static dev.weft.examples.service.Answers.EXPECTED;
import static dev.weft.examples.service.Answers.LONG;
import static dev.weft.examples.service.Answers.MODEL;
import static dev.weft.examples.service.Answers.TEXTS;
import static dev.weft.examples.service.Answers.assertAnswer;
import static dev.weft.examples.service.Answers.get;
import static dev.weft.examples.service.Answers.post;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.World;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import jdk.jfr.consumer.RecordingStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Answers have the bits of the encoder alone, whatever happens around them. */
@Timeout(120)
@SuppressWarnings("try")
class ServiceIT {

    private static final int CALLERS = TEXTS.size();

    /** Its token does not exist, and is read past the end of the table. */
    private static final int[] UNKNOWN = {101, 1 << 23, 102};

    private static Service service(String... options) {
        Settings settings = Settings.of(Settings.parse(Settings.OPTIONS, options));
        return new Service(settings, MODEL);
    }

    private static List<int[]> tokens(int text) {
        return MODEL.tokenizer().sentences(List.of(TEXTS.get(text)));
    }

    /** The ranks of a service, until this is closed. */
    private static final class Running implements AutoCloseable {
        private final Service service;
        private final CompletableFuture<Void> end = new CompletableFuture<>();

        Running(Service service, World world) {
            this.service = service;
            Thread.ofPlatform().start(() -> run(world));
        }

        private void run(World world) {
            try {
                service.run(world);
                end.complete(null);
            } catch (Throwable e) {
                end.completeExceptionally(e);
            }
        }

        @Override
        public void close() throws Exception {
            service.stop();
            end.get(LONG.toSeconds(), TimeUnit.SECONDS);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void virtualThreadsGetTheBitsOfTheEncoder(int ranks) throws Exception {
        Service service = service("--batch-tokens", "512");
        try (Running running = new Running(service, World.threads(ranks));
                ExecutorService callers = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Callable<float[][]>> calls = new ArrayList<>();
            TEXTS.forEach(text -> calls.add(() -> service.embed(List.of(text), LONG)));
            List<Future<float[][]>> answers = callers.invokeAll(calls);
            for (int i = 0; i < CALLERS; i++) {
                assertAnswer(i, answers.get(i).get());
            }
            assertArrayEquals(EXPECTED, both(service), "several texts in one request");
            long batches = service.metrics().requestsPerBatch().count();
            assertTrue(batches < CALLERS, batches + " batches");
            assertEquals(26 * batches, service.metrics().operatorCalls());
        }
    }

    private static float[][] both(Service service) throws Exception {
        float[][] first = service.embed(TEXTS.subList(0, 20), LONG);
        float[][] second = service.embed(TEXTS.subList(20, 35), LONG);
        float[][] third = service.embed(TEXTS.subList(35, CALLERS), LONG);
        return Stream.of(first, second, third).flatMap(Stream::of).toArray(float[][]::new);
    }

    @Test
    void noTextsGetNoEmbeddings() throws Exception {
        Service service = service("--batch-tokens", "128");
        try (Running running = new Running(service, World.threads(2))) {
            assertEquals(0, service.embed(List.of(), LONG).length);
            assertEquals(1, service.metrics().requestsPerBatch().count());
        }
    }

    /** While nobody serves, so that it is known what waits. */
    @Test
    void aFullQueueRejectsAndLaterAccepts() throws Exception {
        Service service = service("--queue", "2", "--batch-tokens", "128");
        try (Http http = new Http(service, 0)) {
            CompletableFuture<float[][]> first = service.submit(tokens(0));
            CompletableFuture<float[][]> second = service.submit(tokens(1));
            RejectedExecutionException e =
                    assertThrows(RejectedExecutionException.class, () -> service.submit(tokens(2)));
            assertEquals("2 requests are waiting: expected fewer", e.getMessage());
            HttpResponse<String> refused = post(http.port(), "[\"a cat\"]");
            assertEquals(503, refused.statusCode());
            assertEquals("1", refused.headers().firstValue("Retry-After").orElse("none"));
            assertEquals("2 requests are waiting: expected fewer\n", refused.body());
            try (Running running = new Running(service, World.threads(2))) {
                assertAnswer(0, first);
                assertAnswer(1, second);
                assertAnswer(2, service.embed(List.of(TEXTS.get(2)), LONG));
            }
            assertTrue(service.metrics().text().contains("service_rejected_total 2.0"));
        }
    }

    @Test
    void callersThatGiveUpLeaveTheOthersRight() throws Exception {
        Service service = service("--queue", "4", "--batch-tokens", "128");
        CompletableFuture<float[][]> first = service.submit(tokens(0));
        CompletableFuture<float[][]> cancelled = service.submit(tokens(1));
        List<String> text = List.of(TEXTS.get(2));
        assertThrows(TimeoutException.class, () -> service.embed(text, Duration.ofMillis(1)));
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, () -> service.embed(text, LONG));
        cancelled.cancel(false);
        CompletableFuture<float[][]> last = service.submit(tokens(3));
        try (Running running = new Running(service, World.threads(2))) {
            assertAnswer(0, first);
            assertAnswer(3, last);
        }
        assertEquals(2, service.metrics().requestsPerBatch().totalAmount());
    }

    @Test
    void theEndAnswersWhatWaits() throws Exception {
        Service service = service("--batch-tokens", "128");
        List<CompletableFuture<float[][]>> answers = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            answers.add(service.submit(tokens(i)));
        }
        service.stop();
        assertThrows(RejectedExecutionException.class, () -> service.submit(tokens(0)));
        service.run(World.threads(3));
        for (int i = 0; i < answers.size(); i++) {
            assertTrue(answers.get(i).isDone());
            assertAnswer(i, answers.get(i));
        }
        assertFalse(service.isServing());
    }

    @Test
    void afterAFailureItServesInANewWorld() throws Exception {
        Service service = service("--batch-tokens", "128");
        try (Running running = new Running(service, World.threads(2))) {
            assertAnswer(0, service.embed(List.of(TEXTS.get(0)), LONG));
            CompletableFuture<float[][]> failed = service.submit(List.of(UNKNOWN));
            assertThrows(ExecutionException.class, () -> failed.get(1, TimeUnit.MINUTES));
            assertAnswer(1, service.embed(List.of(TEXTS.get(1)), LONG));
            assertTrue(service.metrics().text().contains("service_failures_total 1.0"));
        }
    }

    /** A batch without texts between them is no success. */
    @Test
    void afterThreeFailuresInARowItEnds() throws Exception {
        Service service = service("--batch-tokens", "128");
        Running running = new Running(service, World.threads(2));
        for (int i = 0; i < 3; i++) {
            assertEquals(0, service.embed(List.of(), LONG).length);
            CompletableFuture<float[][]> failed = service.submit(List.of(UNKNOWN));
            assertThrows(ExecutionException.class, () -> failed.get(1, TimeUnit.MINUTES));
        }
        assertThrows(ExecutionException.class, () -> running.end.get(1, TimeUnit.MINUTES));
        assertThrows(RejectedExecutionException.class, () -> service.submit(tokens(0)));
    }

    /** Returns after so many calls of operators, those of all ranks together. */
    private static void awaitCalls(int count) throws InterruptedException {
        CountDownLatch calls = new CountDownLatch(count);
        try (RecordingStream stream = new RecordingStream()) {
            stream.enable("dev.weft.Call").withoutThreshold();
            stream.onEvent("dev.weft.Call", event -> calls.countDown());
            stream.startAsync();
            assertTrue(calls.await(LONG.toSeconds(), TimeUnit.SECONDS));
        }
    }

    /** Weft's waits end at their deadline, but ranks without work must not fail. */
    @Test
    void idleRanksOutliveTheDeadline() throws Exception {
        Service service = service("--batch-tokens", "128");
        World world = World.threads(2, Duration.ofSeconds(2));
        try (Running running = new Running(service, world)) {
            assertAnswer(0, service.embed(List.of(TEXTS.get(0)), LONG));
            awaitCalls(2 * 4);
            assertAnswer(1, service.embed(List.of(TEXTS.get(1)), LONG));
            assertTrue(service.metrics().text().contains("service_failures_total 0.0"));
        }
    }

    @Test
    void badRequestsGetOneLine() throws Exception {
        Service service = service("--batch-tokens", "128");
        try (Http http = new Http(service, 0)) {
            String array = "expected a JSON array of texts, as [\"one\", \"two\"]\n";
            assertRefused(http, 400, array, "[]");
            assertRefused(http, 400, array, "[\"one\", 2]");
            assertRefused(http, 400, array, "[\"one\"] 2");
            assertRefused(http, 400, array, "\"one\"");
            assertRefused(http, 400, array, "");
            assertRefused(http, 400, "text number 1 has no words: expected some\n", "[\"a\",\"\"]");
            String many = "[" + "\"a b c\",".repeat(30) + "\"d\"]";
            assertRefused(http, 400, "a request of 153 tokens: expected at most 128\n", many);
            String large = "[\"" + "a".repeat(1 << 20) + "\"]";
            assertRefused(http, 413, "a request of more than 1048576 bytes\n", large);
            // Bytes that begin like 32-bit characters in an order that nobody uses.
            assertEquals(400, post(http.port(), "\0\0[\0").statusCode());
            // One word of a million letters is refused or queued at once, not taken apart.
            String word = "[\"" + "a".repeat(1_000_000) + "\", \"\"]";
            assertRefused(http, 400, "text number 1 has no words: expected some\n", word);
            HttpResponse<String> cut = post(http.port(), "[\"one\"");
            assertEquals(400, cut.statusCode());
            assertEquals(1, cut.body().lines().count(), cut.body());
            assertEquals(503, get(http.port(), "health").statusCode());
            assertEquals(405, get(http.port(), "embed").statusCode());
            HttpResponse<String> other = get(http.port(), "healthz");
            assertEquals("/healthz: expected /embed, /metrics or /health\n", other.body());
            assertEquals(404, other.statusCode());
        }
    }

    private static void assertRefused(Http http, int code, String line, String body)
            throws Exception {
        HttpResponse<String> response = post(http.port(), body);
        assertEquals(line, response.body());
        assertEquals(code, response.statusCode());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--ranks 13|--ranks 13: expected 1 to 12",
                "--port x|--port x: expected 0 to 65535",
                "--batch-tokens 127|--batch-tokens 127: expected 128 to 16384",
                "--queue|--queue: expected a number after it"
            })
    void badOptionsAreRefused(String words, String message) {
        IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> service(words.split(" ")));
        assertEquals(message, e.getMessage());
    }
}
