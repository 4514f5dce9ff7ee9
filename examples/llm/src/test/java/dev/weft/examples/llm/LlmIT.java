package dev.weft.examples.llm;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.examples.llm.Attention.Row;
import dev.weft.fabric.World;
import java.io.File;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The model gives what llama.cpp gives, with the same bits on any ranks and in any batch. */
class LlmIT {

    private static final String MPIRUN = "mpirun.openmpi";
    private static final String TEXT =
            "Once upon a time, there was a boy. Ünïcode? 漢字 and the dog ran away";
    private static final Arena ARENA = Arena.ofShared();
    private static Model model;
    private static Model quantized;
    private static int[] tokens;
    private static float[][] logits;

    @TempDir Path folder;

    @BeforeAll
    static void load() throws Exception {
        model = Models.stories("fp32", ARENA);
        quantized = Models.stories("q8_0", ARENA);
        tokens = model.tokenizer().encode(TEXT);
        logits = logits(model, 1, new int[] {tokens.length}, tokens);
    }

    @AfterAll
    static void free() {
        ARENA.close();
    }

    private static Decoder.Capacity capacity(int chats) {
        return new Decoder.Capacity(64, chats, 128, 0);
    }

    /** After each token of a text, which is read in parts of so many tokens. */
    private static float[][] logits(Model of, int ranks, int[] parts, int... ids) {
        try (World world = World.threads(ranks)) {
            List<float[][]> ofRanks =
                    world.call(
                            fabric -> {
                                try (Decoder decoder = Decoder.of(fabric, of, capacity(1))) {
                                    return logits(decoder, 0, parts, ids);
                                }
                            });
            ofRanks.forEach(other -> assertSame(ofRanks.getFirst(), other));
            return ofRanks.getFirst();
        }
    }

    private static float[][] logits(Decoder decoder, int chat, int[] parts, int... ids) {
        List<float[]> all = new ArrayList<>();
        int at = 0;
        for (int part : parts) {
            int first = at;
            int[] some = Arrays.copyOfRange(ids, at, at + part);
            Row[] rows =
                    IntStream.range(0, part)
                            .mapToObj(i -> new Row(chat, first + i))
                            .toArray(Row[]::new);
            all.addAll(List.of(decoder.call(some, rows, IntStream.range(0, part).toArray())));
            at += part;
        }
        assertEquals(ids.length, at);
        return all.toArray(float[][]::new);
    }

    private static void assertSame(float[][] expected, float[][] actual) {
        assertEquals(expected.length, actual.length);
        for (int i = 0; i < expected.length; i++) {
            assertEquals(-1, Arrays.mismatch(expected[i], actual[i]), "row " + i);
        }
    }

    @Test
    void logitsAreThoseOfLlamaCpp() throws Exception {
        Path file = folder.resolve("stories.gguf");
        GgufWriter.write(model, file);
        try (LlamaCpp llama = new LlamaCpp(file, 2, 128)) {
            assertArrayEquals(llama.tokens(TEXT), tokens);
            float[][] expected = llama.each(tokens);
            for (int i = 0; i < expected.length; i++) {
                float largest = 0;
                for (float one : expected[i]) {
                    largest = Math.max(largest, Math.abs(one));
                }
                assertArrayEquals(expected[i], logits[i], 1e-3f * largest, "token " + i);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4, 7})
    void ranksGiveTheBitsOfOne(int ranks) {
        assertSame(logits, logits(model, ranks, new int[] {tokens.length}, tokens));
    }

    /** Seven ranks, of which one has no head and others have two; columns by blocks of 32. */
    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4, 7})
    void ranksGiveTheBitsOfOneWithWeightsOfEightBits(int ranks) {
        int[] whole = {tokens.length};
        assertSame(logits(quantized, 1, whole, tokens), logits(quantized, ranks, whole, tokens));
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "1, 5", "2, 7", "3, 2"})
    void aTextReadInPartsGivesTheBitsOfTheWhole(int ranks, int part) {
        int[] parts = new int[Math.ceilDiv(tokens.length, part)];
        Arrays.fill(parts, part);
        parts[parts.length - 1] = tokens.length - (parts.length - 1) * part;
        assertSame(logits, logits(model, ranks, parts, tokens));
    }

    /** Three chats in each call, of different lengths. */
    @Test
    void aTextInABatchGivesTheBitsOfTheTextAlone() {
        Random random = new Random(1);
        int[] other = random.ints(40, 300, 30_000).toArray();
        int[] third = random.ints(tokens.length, 300, 30_000).toArray();
        try (World world = World.threads(2)) {
            world.run(
                    fabric -> {
                        try (Decoder decoder = Decoder.of(fabric, model, capacity(3))) {
                            logits(decoder, 1, new int[] {40 - tokens.length}, prefix(other));
                            for (int i = 0; i < tokens.length; i++) {
                                int[] ids = {third[i], tokens[i], other[40 - tokens.length + i]};
                                Row[] rows = {
                                    new Row(0, i), new Row(2, i), new Row(1, 40 - tokens.length + i)
                                };
                                float[][] found = decoder.call(ids, rows, 1);
                                assertEquals(-1, Arrays.mismatch(logits[i], found[0]));
                            }
                        }
                    });
        }
    }

    private static int[] prefix(int... other) {
        return Arrays.copyOf(other, other.length - tokens.length);
    }

    @Test
    void aModelThatWasWrittenIsTheSame() throws Exception {
        Path file = folder.resolve("copy.gguf");
        GgufWriter.write(quantized, file);
        try (Arena arena = Arena.ofShared()) {
            Model copy = Model.load(file, "file", arena);
            int[] whole = {tokens.length};
            assertEquals(model.shape(), copy.shape());
            assertArrayEquals(tokens, copy.tokenizer().encode(TEXT));
            assertSame(logits(quantized, 1, whole, tokens), logits(copy, 1, whole, tokens));
        }
    }

    @Test
    void processesGiveTheBitsOfOneRank() throws Exception {
        List<String> launcher = java();
        launcher.addAll(List.of("dev.weft.cli.Main", "launch", "-n", "3", "--"));
        assertEquals(digest(logits), run(launcher));
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
        assertEquals(digest(logits), run(launcher));
    }

    private static String digest(float[][] all) {
        return "digest %08x".formatted(Arrays.deepHashCode(all));
    }

    /** What a launched rank runs. */
    public static void main(String... args) throws Exception {
        try (World world = World.auto(1);
                Arena arena = Arena.ofShared()) {
            Model own = Model.load(Path.of(args[0]), "fp32", arena);
            int[] ids = own.tokenizer().encode(TEXT);
            world.run(
                    fabric -> {
                        try (Decoder decoder = Decoder.of(fabric, own, capacity(1))) {
                            float[][] found =
                                    logits(decoder, 0, new int[] {3, ids.length - 3}, ids);
                            if (fabric.rank() == 0) {
                                IO.println(digest(found));
                            }
                        }
                    });
        }
    }

    private static List<String> java() {
        return new ArrayList<>(
                List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path")));
    }

    /** What {@link #main} prints under a launcher. */
    private String run(List<String> launcher) throws Exception {
        List<String> command = new ArrayList<>(launcher);
        command.addAll(java());
        command.add(LlmIT.class.getName());
        command.add(Models.stories().toString());
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
