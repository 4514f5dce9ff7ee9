package dev.weft.examples.encoder;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.Gpu;
import dev.weft.fabric.World;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The encoder on a GPU. */
@Tag("gpu")
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class GpuEncoderIT {

    private static final double LEAST_SIMILARITY = 0.999;

    /** With full and partly filled tiles and blocks of keys; all at once they are one graph. */
    private static final int[] LENGTHS = {3, 40, 16, 15, 1, 33, 17, 12, 32, 128, 129, 512};

    /** So often all sentences are more than a batch, and each batch more than a graph has. */
    private static final int TIMES = 10;

    private final Arena arena = Arena.ofShared();
    private Weights weights;
    private Gpu gpu;

    @BeforeEach
    void load() throws IOException {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
        weights = Weights.load(arena);
    }

    @AfterEach
    void free() {
        arena.close();
    }

    private static List<int[]> sentences(int... lengths) {
        Random random = new Random(1);
        return Arrays.stream(lengths)
                .mapToObj(length -> random.ints(length, 1000, 30_000).toArray())
                .toList();
    }

    /** Each batch is one call of {@code encode}. */
    private List<float[]> onGpu(int ranks, List<List<int[]>> batches) {
        try (World world = World.threads(ranks, Duration.ofSeconds(60))) {
            List<List<float[]>> ofRanks =
                    world.call(
                            fabric -> {
                                List<float[]> means = new ArrayList<>();
                                try (RankEncoder encoder =
                                        RankEncoder.onGpu(fabric, weights, gpu)) {
                                    for (List<int[]> batch : batches) {
                                        means.addAll(List.of(encoder.encode(batch)));
                                    }
                                }
                                return means;
                            });
            for (List<float[]> means : ofRanks) {
                assertSame(ofRanks.getFirst(), means, "on all ranks");
            }
            return ofRanks.getFirst();
        }
    }

    private static void assertSame(List<float[]> expected, List<float[]> found, String what) {
        assertEquals(expected.size(), found.size(), what);
        for (int i = 0; i < expected.size(); i++) {
            assertArrayEquals(expected.get(i), found.get(i), what + ", sentence " + i);
        }
    }

    @Test
    void embeddingsAreCloseToThoseOfTheCpu() {
        List<int[]> sentences = sentences(LENGTHS);
        List<float[]> found = onGpu(1, List.of(sentences));
        double least = leastSimilarity(weights, sentences, found);
        System.out.println("least cosine similarity with the CPU's embeddings: " + least);
        assertTrue(least > LEAST_SIMILARITY, "least cosine similarity " + least);
        assertTrue(least < 1, "nothing was rounded");
    }

    /** With the CPU's embeddings. */
    static double leastSimilarity(Weights weights, List<int[]> sentences, List<float[]> found) {
        float[][] expected;
        try (World world = World.threads(1)) {
            expected =
                    world.call(
                                    fabric -> {
                                        try (RankEncoder encoder =
                                                new RankEncoder(fabric, weights)) {
                                            return encoder.encode(sentences);
                                        }
                                    })
                            .getFirst();
        }
        double least = 1;
        for (int i = 0; i < expected.length; i++) {
            least = Math.min(least, similarity(expected[i], found.get(i)));
        }
        return least;
    }

    static double similarity(float[] one, float[] other) {
        double product = 0;
        double ofOne = 0;
        double ofOther = 0;
        for (int i = 0; i < one.length; i++) {
            product += (double) one[i] * other[i];
            ofOne += (double) one[i] * one[i];
            ofOther += (double) other[i] * other[i];
        }
        return product / Math.sqrt(ofOne * ofOther);
    }

    /**
     * One by one and all at once, in graphs of several sizes, and so many that no graph is used.
     */
    @Test
    void aSentenceHasTheSameBitsInAnyBatch() {
        List<int[]> sentences = sentences(LENGTHS);
        List<List<int[]>> alone = new ArrayList<>();
        sentences.forEach(one -> alone.add(List.of(one)));
        // Again, as a second launch of the same graph.
        alone.addAll(List.copyOf(alone));
        List<float[]> twice = onGpu(1, alone);
        List<float[]> expected = twice.subList(0, sentences.size());
        assertSame(expected, twice.subList(sentences.size(), twice.size()), "again");
        assertSame(expected, onGpu(1, List.of(sentences)), "all at once");
        List<int[]> many = new ArrayList<>();
        List<float[]> expectedOfMany = new ArrayList<>();
        for (int i = 0; i < TIMES; i++) {
            many.addAll(sentences);
            expectedOfMany.addAll(expected);
        }
        Collections.reverse(many);
        Collections.reverse(expectedOfMany);
        assertSame(expectedOfMany, onGpu(1, List.of(many)), "in large batches");
    }

    /** Of uneven parts, up to one head for each; a short sentence leaves ranks without rows. */
    @Test
    void anyRanksGiveTheBitsOfOne() {
        List<int[]> sentences = sentences(LENGTHS);
        List<List<int[]>> batches =
                List.of(sentences, List.of(sentences.getFirst()), List.of(sentences.getLast()));
        List<float[]> expected = onGpu(1, batches);
        for (int ranks : new int[] {2, 3, 4, 5, Weights.HEADS}) {
            assertSame(expected, onGpu(ranks, batches), ranks + " ranks");
        }
    }

    @Test
    void tooManyRanksAndWrongTokensAreRefused() {
        assertRefused(
                "13 ranks: expected at most 12, a head for each",
                () -> onGpu(13, List.of(sentences(3))));
        assertRefused(
                "a sentence of 513 tokens: expected 1 to 512",
                () -> onGpu(1, List.of(sentences(513))));
        assertRefused(
                "token 30522: expected 0 to 30521",
                () -> onGpu(1, List.of(List.of(new int[] {30_522}))));
    }

    private static void assertRefused(String message, Runnable what) {
        IllegalArgumentException e = assertThrows(IllegalArgumentException.class, what::run);
        assertEquals(message, e.getMessage());
    }

    @Test
    void theProgramFindsTheCat() throws Exception {
        PrintStream out = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        try {
            Search.run("--gpu", "a", "pet", "that", "is", "asleep");
        } finally {
            System.setOut(out);
        }
        List<String> found = printed.toString(StandardCharsets.UTF_8).lines().toList();
        assertEquals(8, found.size(), found::toString);
        assertTrue(found.getFirst().matches("0\\.5.*The cat sleeps.*"), found::toString);
    }
}
