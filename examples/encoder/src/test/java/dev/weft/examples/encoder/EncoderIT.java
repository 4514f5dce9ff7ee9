package dev.weft.examples.encoder;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.langchain4j.data.embedding.Embedding;
import dev.langchain4j.data.segment.TextSegment;
import dev.weft.cuda.Gpu;
import dev.weft.fabric.World;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The model gives what ONNX Runtime gives, with the same bits on any ranks. */
class EncoderIT {

    private static final float TOLERANCE = 1e-5f;
    private static final String MPIRUN = "mpirun.openmpi";
    private static final int[] DIFFERENT = {3, 40, 16, 15, 1, 33, 17, 12};
    private static final String[] WHO = {
        "My neighbour's cat", "The old violinist", "A young programmer", "The central bank",
        "Our baker", "The night train", "A migrating goose", "The surgeon",
        "An unknown painter", "The weather station on the northern cape", "Grandmother",
                "A tired wolf",
        "The committee", "Every second student", "The lighthouse", "A retired admiral",
        "The chess champion", "Nobody", "The river", "An honest politician"
    };
    private static final String[] WHAT = {
        "sleeps.",
        "was late again this morning!",
        "sold three pictures to the museum, or so it said.",
        "did not answer the question",
        "raised its prices by 2.5% in October 2019.",
        "walks along the coast until the sun has set behind the hills and the lamps are lit",
        "lost €40 in a bet",
        "prefers tea to coffee, and silence to both",
        "knows why",
        "is made of steel?"
    };
    private static final Arena ARENA = Arena.ofShared();
    private static Weights weights;
    private static String ofOneRank;

    @TempDir Path folder;

    @BeforeAll
    static void load() throws IOException {
        weights = Weights.load(ARENA);
        ofOneRank = digest(1);
    }

    @AfterAll
    static void free() {
        ARENA.close();
    }

    private static List<TextSegment> texts() {
        return Arrays.stream(WHO)
                .flatMap(who -> Arrays.stream(WHAT).map(what -> TextSegment.from(who + " " + what)))
                .toList();
    }

    private static List<int[]> sentences(int... lengths) {
        Random random = new Random(1);
        return Arrays.stream(lengths)
                .mapToObj(length -> random.ints(length, 1000, 30_000).toArray())
                .toList();
    }

    private static String digest(float[][] means) {
        return "digest %08x".formatted(Arrays.deepHashCode(means));
    }

    /** Of a batch, for which the ranks do not have equally many rows. */
    private static String digest(int ranks) {
        try (World world = World.threads(ranks)) {
            return digest(encode(world, sentences(DIFFERENT)));
        }
    }

    private static float[][] encode(World world, List<int[]> sentences) {
        return world.call(
                        fabric -> {
                            try (RankEncoder encoder = new RankEncoder(fabric, weights)) {
                                return encoder.encode(sentences);
                            }
                        })
                .getFirst();
    }

    /** The last operator of the last layer cannot be prepared: its weights are of another shape. */
    @Test
    void whatWasPreparedIsClosedIfALaterOperatorCannotBe() {
        List<Weights.Layer> layers = new ArrayList<>(weights.layers());
        Weights.Layer last = layers.removeLast();
        layers.add(
                new Weights.Layer(
                        last.query(),
                        last.key(),
                        last.value(),
                        last.attentionOut(),
                        last.attentionNorm(),
                        last.up(),
                        last.attentionOut(),
                        last.norm()));
        Weights wrong =
                new Weights(
                        weights.words(),
                        weights.positions(),
                        weights.types(),
                        weights.embeddingNorm(),
                        layers);
        int before = threadsOfOperators();
        try (World world = World.threads(1)) {
            assertThrows(
                    IndexOutOfBoundsException.class,
                    () -> world.run(fabric -> new RankEncoder(fabric, wrong).close()));
            assertEquals(before, threadsOfOperators());
        }
    }

    private static int threadsOfOperators() {
        return (int)
                Thread.getAllStackTraces().keySet().stream()
                        .filter(thread -> thread.getName().matches("weft-\\d+-\\d+"))
                        .count();
    }

    /** What a launched rank runs. */
    public static void main(String... args) throws IOException {
        try (WeftEmbeddingModel model = WeftEmbeddingModel.auto(1)) {
            String digest = digest(model.encode(sentences(DIFFERENT)));
            if (model.isFirstRank()) {
                IO.println(digest);
            }
        }
    }

    /** The longest, and 200 texts, some of which are much alike. */
    @Test
    void embeddingsAndNeighboursAreThoseOfOnnxRuntime() throws Exception {
        List<TextSegment> texts = texts();
        assertEquals(200, texts.size());
        WordPiece tokenizer = Weights.tokenizer();
        List<int[]> tokens = texts.stream().map(text -> tokenizer.tokens(text.text())).toList();
        List<int[]> others = sentences(Weights.LONGEST, 3, 129);
        try (OnnxReference onnx = new OnnxReference(2);
                WeftEmbeddingModel model = WeftEmbeddingModel.threads(2)) {
            assertNear(normalized(onnx.encode(others)), normalized(model.encode(others)));
            List<float[]> expected = normalized(onnx.encode(tokens));
            List<float[]> actual =
                    model.embedAll(texts).content().stream().map(Embedding::vector).toList();
            assertNear(expected, actual);
            for (int i = 0; i < texts.size(); i++) {
                assertEquals(nearest(expected, i), nearest(actual, i), texts.get(i).text());
            }
            IllegalArgumentException e =
                    assertThrows(IllegalArgumentException.class, () -> model.embed("\u200b"));
            assertEquals("text number 0 has no words: expected some", e.getMessage());
        }
    }

    private static void assertNear(List<float[]> expected, List<float[]> actual) {
        for (int i = 0; i < expected.size(); i++) {
            assertArrayEquals(expected.get(i), actual.get(i), TOLERANCE, "sentence " + i);
        }
    }

    private static List<float[]> normalized(float[][] vectors) {
        return Arrays.stream(vectors).map(EncoderIT::normalized).toList();
    }

    private static float[] normalized(float[] vector) {
        Embedding embedding = Embedding.from(vector.clone());
        embedding.normalize();
        return embedding.vector();
    }

    private static int nearest(List<float[]> all, int to) {
        int best = -1;
        double most = Double.NEGATIVE_INFINITY;
        for (int i = 0; i < all.size(); i++) {
            double product = 0;
            for (int col = 0; col < Weights.WIDTH; col++) {
                product += (double) all.get(i)[col] * all.get(to)[col];
            }
            if (i != to && product > most) {
                best = i;
                most = product;
            }
        }
        return best;
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3, 5, 8})
    void threadsGiveTheBitsOfOneRank(int ranks) throws Exception {
        assertEquals(ofOneRank, digest(ranks));
    }

    /** All at once, one by one, and so many that they are two batches. */
    @Test
    void aSentenceHasTheSameBitsInAnyBatch() {
        List<int[]> sentences = new ArrayList<>(sentences(DIFFERENT));
        sentences.addAll(sentences(Weights.LONGEST, Weights.LONGEST, Weights.LONGEST, 500));
        try (World world = World.threads(2)) {
            float[][] all = encode(world, sentences);
            world.run(
                    fabric -> {
                        try (RankEncoder encoder = new RankEncoder(fabric, weights)) {
                            for (int i = 0; i < all.length; i++) {
                                List<int[]> one = List.of(sentences.get(i));
                                assertArrayEquals(all[i], encoder.encode(one)[0]);
                            }
                        }
                    });
        }
    }

    /** Queries that fit the smallest block: what follows them is zero. */
    @Test
    void plainJavaGivesTheBitsOfVectors() {
        assertArrayEquals(
                attention(new PlainAttentionMath()), attention(new VectorAttentionMath()));
    }

    private static float[][] attention(AttentionMath math) {
        int keys = 36;
        int queries = 8;
        int block = math.block();
        Random random = new Random(3);
        float[] a = new float[keys * keys];
        float[] b = new float[keys * block];
        for (int k = 0; k < keys; k++) {
            for (int i = 0; i < keys; i++) {
                a[k * keys + i] = (float) random.nextGaussian(0, 3);
            }
            for (int q = 0; q < queries; q++) {
                b[k * block + q] = (float) random.nextGaussian(0, 3);
            }
        }
        float[] scores = new float[keys * block];
        math.multiply(a, 1, keys, keys, keys, b, scores);
        float[] products = scores.clone();
        float[] factors = new float[block];
        math.softmax(scores, keys - 3, factors);
        float[][] all = new float[2 * keys + 1][];
        for (int k = 0; k < keys; k++) {
            all[k] = Arrays.copyOfRange(products, k * block, k * block + queries);
            all[keys + k] = Arrays.copyOfRange(scores, k * block, k * block + queries);
        }
        all[2 * keys] = Arrays.copyOf(factors, queries);
        return all;
    }

    @Test
    @Tag("long")
    void processesGiveTheBitsOfOneRank() throws Exception {
        List<String> launcher = java();
        launcher.addAll(List.of("dev.weft.cli.Main", "launch", "-n", "2", "--"));
        assertEquals(ofOneRank, run(launcher));
    }

    /** Each rank as if on a host of its own. */
    @Test
    @Tag("long")
    void hostsGiveTheBitsOfOneRank() throws Exception {
        assumeTrue(
                Arrays.stream(System.getenv("PATH").split(File.pathSeparator))
                        .anyMatch(bin -> Files.isExecutable(Path.of(bin, MPIRUN))),
                "no " + MPIRUN);
        String options = "-n 2 --oversubscribe --bind-to none --allow-run-as-root -x";
        List<String> launcher = new ArrayList<>(List.of(MPIRUN));
        launcher.addAll(List.of(options.split(" ")));
        launcher.add("JAVA_TOOL_OPTIONS=-Dweft.mpi.ranks.per.host=1");
        assertEquals(ofOneRank, run(launcher));
    }

    @Test
    void theProgramFindsTheCat() throws Exception {
        PrintStream out = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        try {
            Search.main();
        } finally {
            System.setOut(out);
        }
        List<String> found = printed.toString(StandardCharsets.UTF_8).lines().toList();
        assertEquals(8, found.size(), found::toString);
        assertTrue(found.getFirst().matches("0\\.5.*The cat sleeps.*"), found::toString);
    }

    @Test
    void theProgramSaysWhichOptionItDoesNotKnow() {
        assertRefused("'--cpu': usage: Search [--gpu] [QUESTION]", "--cpu", "a pet");
    }

    @Test
    void withoutAGpuTheProgramSaysWhatIsMissing() {
        assumeTrue(Gpu.unavailable().isPresent(), "there is a GPU");
        assertRefused("--gpu: " + Gpu.unavailable().get(), "--gpu", "a pet");
    }

    private static void assertRefused(String message, String... args) {
        IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> Search.run(args));
        assertEquals(message, e.getMessage());
    }

    @Test
    void aLayerIsLoggedCallByCall() throws IOException {
        LayerTimeline.log(folder.resolve("layer").toString(), 1, 1);
        for (int rank = 0; rank < 2; rank++) {
            String json = Files.readString(folder.resolve("layer-" + rank + ".json"));
            assertTrue(
                    json.matches(
                            ".*copy.*query, key, value.*attention.*attention out.*copy.*up"
                                    + ".*copy.*down.*"),
                    json);
        }
    }

    private static List<String> java() {
        return new ArrayList<>(
                List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "--add-modules",
                        "jdk.incubator.vector",
                        "-cp",
                        System.getProperty("java.class.path")));
    }

    /** What {@link #main} prints under a launcher. */
    private String run(List<String> launcher) throws Exception {
        List<String> command = new ArrayList<>(launcher);
        command.addAll(java());
        command.add(EncoderIT.class.getName());
        Path out = folder.resolve("out");
        Path messages = folder.resolve("messages");
        Process process =
                new ProcessBuilder(command)
                        .redirectOutput(out.toFile())
                        .redirectError(messages.toFile())
                        .start();
        try {
            assertTrue(process.waitFor(2, TimeUnit.MINUTES), () -> command + " does not end");
        } finally {
            process.destroyForcibly();
        }
        assertEquals(0, process.exitValue(), Files.readString(messages));
        return Files.readString(out, StandardCharsets.UTF_8).strip();
    }
}
