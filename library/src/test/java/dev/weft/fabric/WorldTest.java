package dev.weft.fabric;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.op.AllGatherMatmul;
import dev.weft.op.MatmulReduceScatter;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What a program of a user's first meets. */
class WorldTest {

    @Test
    void nobodyHasStartedRanksSoTheyAreThreads() {
        try (World world = World.auto(3, Map.of("PATH", "/bin"))) {
            assertEquals(3, world.call(Fabric::size).size());
        }
        String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () -> World.auto(3, Map.of("WEFT_RANK", "1")))
                        .getMessage();
        assertTrue(message.contains("WEFT_RANKS is not set"), message);
    }

    @Test
    void arraysOnTheHeapAreMultipliedAndAFutureTellsOfTheEnd() {
        Shards shards = Shards.of(2, 1);
        Matrix a =
                Matrix.of(MemorySegment.ofArray(new float[] {1, 2, 3, 4, 5, 6}), DType.FP32, 3, 2);
        Matrix b = Matrix.of(MemorySegment.ofArray(new float[] {1, 10}), DType.FP32, 2, 1);
        try (World world = World.threads(2)) {
            world.run(
                    fabric -> {
                        int rank = fabric.rank();
                        Matrix shard = a.rows(shards.firstRow(rank), shards.rows(rank));
                        try (AllGatherMatmul op =
                                AllGatherMatmul.on(fabric)
                                        .a(shards, DType.FP32)
                                        .b(b)
                                        .algorithm(Algorithm.RING)
                                        .prepare()) {
                            float[] c =
                                    op.start(shard)
                                            .future()
                                            .thenApply(result -> result.product().toArray())
                                            .get();
                            assertArrayEquals(new float[] {21, 43, 65}, c);
                        }
                    });
        }
    }

    @Test
    void anArenaOfAnotherThreadIsRefusedInASentence() {
        try (World world = World.threads(2);
                Arena confined = Arena.ofConfined()) {
            Matrix b = Matrix.allocate(confined, DType.FP32, 4, 4);
            world.run(
                    fabric -> {
                        assertRefused(() -> AllGatherMatmul.on(fabric).b(b));
                        assertRefused(() -> MatmulReduceScatter.on(fabric).b(b));
                    });
        }
    }

    private static void assertRefused(Runnable action) {
        String message = assertThrows(IllegalArgumentException.class, action::run).getMessage();
        assertTrue(message.contains("confined to another thread: expected"), message);
    }
}
