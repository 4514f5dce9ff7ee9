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
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

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
    void anMpiRankThatCannotBeIsToldWithItsValues() {
        Map<String, String> environment = Map.of("PMI_RANK", "2", "PMI_SIZE", "2");
        String message =
                assertThrows(IllegalStateException.class, () -> World.auto(3, environment))
                        .getMessage();
        assertTrue(message.startsWith("PMI_RANK=2 and PMI_SIZE=2 in the environment"), message);
    }

    @Test
    void aWorldThatHasFailedSaysThatANewOneIsNeeded() {
        try (World world = World.threads(2)) {
            World.Body failing =
                    fabric -> {
                        if (fabric.rank() == 1) {
                            throw new IllegalArgumentException("no such layer");
                        }
                        fabric.barrier();
                    };
            assertThrows(IllegalArgumentException.class, () -> world.run(failing));
            String message =
                    assertThrows(IllegalStateException.class, () -> world.run(fabric -> {}))
                            .getMessage();
            assertEquals(
                    "this world has failed before (no such layer): expected World.renew(), or"
                            + " under MPI new processes",
                    message);
        }
    }

    @Test
    void aFailedWorldOfThreadsIsRenewed() {
        Duration deadline = Duration.ofSeconds(7);
        World failed = World.threads(3, deadline);
        assertThrows(
                UnsupportedOperationException.class,
                () ->
                        failed.run(
                                fabric -> {
                                    throw new UnsupportedOperationException();
                                }));
        try (World world = failed.renew()) {
            assertEquals(List.of(deadline, deadline, deadline), world.call(Fabric::deadline));
            world.run(Fabric::barrier);
        }
        failed.close();
    }

    @Test
    void ranksThatNobodyStartsAgainCannotBeRenewed(@TempDir Path folder) {
        assertNotRenewed(
                "nobody starts these ranks again, so they cannot meet again: expected a start by"
                        + " ./weft launch --restarts N",
                Map.of("WEFT_RANK", "0", "WEFT_RANKS", "1", "WEFT_JOB", folder + "/job"));
        assertNotRenewed(
                "ranks that torchrun started cannot meet again: end this process, so that torchrun"
                        + " starts all ranks again (--max-restarts), or use ./weft launch"
                        + " --restarts",
                Map.of(
                        "RANK", "0",
                        "WORLD_SIZE", "1",
                        "MASTER_ADDR", "localhost",
                        "MASTER_PORT", "1",
                        "TORCHELASTIC_RUN_ID", folder.toString()));
    }

    private static void assertNotRenewed(String expected, Map<String, String> environment) {
        World world = World.joined(environment);
        world.run(fabric -> assertEquals(1, fabric.size()));
        assertEquals(
                expected,
                assertThrows(UnsupportedOperationException.class, world::renew).getMessage());
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
