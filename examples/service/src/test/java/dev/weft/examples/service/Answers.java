package dev.weft.examples.service;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import dev.langchain4j.data.embedding.Embedding;
import dev.weft.examples.encoder.Model;
import dev.weft.examples.encoder.RankEncoder;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** What tests ask a service, and what the encoder alone gives for it. */
final class Answers {

    static final Duration LONG = Duration.ofMinutes(1);

    static final List<String> TEXTS =
            IntStream.range(0, 50)
                    .mapToObj(i -> "Number " + i + " " + "sings and sleeps ".repeat(i % 9))
                    .toList();

    static final Model MODEL = load();

    /** By text. */
    static final float[][] EXPECTED = encodeAlone();

    private Answers() {}

    private static Model load() {
        try {
            return Model.load(Arena.global());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static float[][] encodeAlone() {
        List<int[]> texts = MODEL.tokenizer().sentences(TEXTS);
        try (World world = World.threads(1)) {
            float[][] means = world.call(fabric -> encoded(fabric, texts)).getFirst();
            Stream.of(means).forEach(mean -> Embedding.from(mean).normalize());
            return means;
        }
    }

    private static float[][] encoded(Fabric fabric, List<int[]> texts) {
        try (RankEncoder encoder = new RankEncoder(fabric, MODEL.weights(), 512)) {
            return encoder.encode(texts);
        }
    }

    static void assertAnswer(int text, CompletableFuture<float[][]> answer) throws Exception {
        assertAnswer(text, answer.get(LONG.toSeconds(), TimeUnit.SECONDS));
    }

    static void assertAnswer(int text, float[][] answer) {
        assertArrayEquals(new float[][] {EXPECTED[text]}, answer, TEXTS.get(text));
    }

    static HttpResponse<String> post(int port, String body) throws Exception {
        return send(port, "embed", HttpRequest.newBuilder().POST(publisher(body)));
    }

    static HttpRequest.BodyPublisher publisher(String body) {
        return HttpRequest.BodyPublishers.ofString(body);
    }

    static HttpResponse<String> get(int port, String path) throws Exception {
        return send(port, path, HttpRequest.newBuilder().GET());
    }

    private static HttpResponse<String> send(int port, String path, HttpRequest.Builder request)
            throws Exception {
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(
                    request.uri(URI.create("http://localhost:%d/%s".formatted(port, path)))
                            .timeout(LONG)
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
        }
    }
}
