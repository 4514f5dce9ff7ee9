package dev.weft.examples.llm;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.Gpu;
import dev.weft.examples.llm.Attention.Row;
import dev.weft.fabric.World;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The decoder on a GPU, with stories15M. */
@Tag("gpu")
class GpuLlmIT {

    private static final int[] IDS = {1, 9038, 2501, 263, 931, 29892, 727, 471, 263, 2217, 7826};

    /** Of the largest logit: two roundings to bf16 for each of 6 layers, and more. */
    private static final double BOUND = 0.03;

    private final Arena arena = Arena.ofShared();
    private Model model;
    private Gpu gpu;

    @BeforeEach
    void load() throws Exception {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
        model = Models.stories("fp32", arena);
    }

    @AfterEach
    void free() {
        arena.close();
    }

    private static Decoder.Capacity capacity(int chats) {
        return new Decoder.Capacity(64, chats, 256, 1);
    }

    private static Row[] rows(int chat, int first, int count) {
        return IntStream.range(first, first + count)
                .mapToObj(place -> new Row(chat, place))
                .toArray(Row[]::new);
    }

    private static int[] all(int count) {
        return IntStream.range(0, count).toArray();
    }

    /** The logits of all tokens, which come in parts. */
    private float[][] logits(int ranks, Gpu on, int chat, int... parts) {
        try (World world = World.threads(ranks, Duration.ofSeconds(60))) {
            List<float[][]> ofRanks =
                    world.call(
                            fabric -> {
                                try (Decoder decoder = Decoder.of(fabric, model, capacity(3), on)) {
                                    return logits(decoder, chat, parts);
                                }
                            });
            return ofRanks.getFirst();
        }
    }

    private static float[][] logits(Decoder decoder, int chat, int... parts) {
        List<float[]> logits = new ArrayList<>();
        int first = 0;
        for (int part : parts) {
            int[] ids = Arrays.copyOfRange(IDS, first, first + part);
            float[][] found = decoder.call(ids, rows(chat, first, part), all(part));
            logits.addAll(List.of(found));
            first += part;
        }
        return logits.toArray(float[][]::new);
    }

    @Test
    void logitsAreCloseToThoseOfTheCpu() {
        float[][] cpu = logits(1, null, 0, IDS.length);
        float[][] found = logits(1, gpu, 0, IDS.length);
        double worst = 0;
        for (int i = 0; i < IDS.length; i++) {
            float most = 0;
            for (float each : cpu[i]) {
                most = Math.max(most, Math.abs(each));
            }
            for (int token = 0; token < cpu[i].length; token++) {
                worst = Math.max(worst, Math.abs(cpu[i][token] - found[i][token]) / most);
            }
        }
        System.out.println("logits on the GPU differ from the CPU's by " + worst);
        assertTrue(worst < BOUND, "off by " + worst + " of the largest logit");
        assertTrue(worst > 0, "nothing was rounded");
    }

    /** At once, in parts, one by one (a graph from the second on), in another chat, over ranks. */
    @Test
    void everyLogitHasTheSameBits() {
        float[][] expected = logits(1, gpu, 0, IDS.length);
        int[] ones = new int[IDS.length];
        Arrays.fill(ones, 1);
        assertSame(expected, logits(1, gpu, 0, ones), "one by one");
        assertSame(expected, logits(1, gpu, 2, 3, 1, 7), "in parts, in another chat");
        for (int ranks = 2; ranks <= 4; ranks++) {
            assertSame(expected, logits(ranks, gpu, 1, 4, 1, 1, 5), ranks + " ranks");
        }
    }

    private static void assertSame(float[][] expected, float[][] found, String what) {
        assertEquals(expected.length, found.length, what);
        for (int i = 0; i < expected.length; i++) {
            assertArrayEquals(expected[i], found[i], what + ", token " + i);
        }
    }

    /** Several chats in one call, of which each has a token: what graphs are launched for. */
    @Test
    void chatsDoNotInfluenceEachOther() {
        float[][] expected = logits(1, gpu, 0, IDS.length);
        try (World world = World.threads(1)) {
            world.run(
                    fabric -> {
                        try (Decoder decoder = Decoder.of(fabric, model, capacity(3), gpu)) {
                            for (int i = 0; i < IDS.length; i++) {
                                int[] ids = {IDS[i], IDS[0], IDS[i]};
                                Row[] rows = {new Row(0, i), new Row(1, i), new Row(2, i)};
                                float[][] found = decoder.call(ids, rows, 0, 1, 2);
                                assertArrayEquals(expected[i], found[0], "token " + i);
                                assertArrayEquals(expected[i], found[2], "token " + i);
                            }
                        }
                    });
        }
    }
}
