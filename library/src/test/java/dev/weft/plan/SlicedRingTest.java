package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.GatherView.Block;
import dev.weft.plan.GatherView.Lane;
import dev.weft.plan.GatherView.Move;
import java.util.Random;
import org.junit.jupiter.api.Test;

class SlicedRingTest {

    @Test
    void anyShardsAreDealtOutInSlicesWithoutADeadlock() {
        for (long seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            int programs = 1 + random.nextInt(3);
            int lanes = 1 + random.nextInt(4);
            boolean byLane = random.nextBoolean();
            Chunks given = PlanCases.randomChunks(seed, 1 + random.nextInt(6));
            GatherWriter writer = Algorithm.slicedRing(programs, lanes, byLane);
            Hosts hosts = Hosts.one(given.shards().ranks());
            PlanPropertyTest.check(Algorithm.RING, writer, given, 1, hosts, seed);
            String name = "seed " + seed + ", " + writer + ", " + given;
            GatherView.of(PlanCases.plans(writer, given, 1), writer.cut(given))
                    .forEach(plan -> checkSlices(plan, programs, lanes, byLane, name));
        }
    }

    private static void checkSlices(
            GatherView plan, int programs, int lanes, boolean byLane, String name) {
        Chunks chunks = plan.chunks();
        for (Block block : plan.consumption()) {
            long slice =
                    slice(chunks, block.source(), block.firstRow(), block.rows(), programs * lanes);
            assertEquals(byLane ? slice % programs : slice / lanes, block.program(), name);
        }
        assertEquals(plan.ranks() == 1 ? 0 : lanes, plan.lanes().size(), name);
        for (Lane lane : plan.lanes()) {
            for (Move transfer : lane.moves()) {
                Chunk chunk = chunks.chunk(transfer.source(), transfer.chunk());
                long slice =
                        slice(
                                chunks,
                                chunk.source(),
                                chunk.firstRow(),
                                chunk.rows(),
                                programs * lanes);
                assertEquals(byLane ? slice / programs : slice % lanes, lane.index(), name);
            }
        }
    }

    /** The number of the slice that all of the rows are in. */
    private static long slice(Chunks chunks, int source, long firstRow, long rows, int slices) {
        long sliceRows = Math.ceilDiv(chunks.shards().rows(source), slices);
        long first = firstRow / sliceRows;
        assertEquals(first, (firstRow + rows - 1) / sliceRows, "within one slice");
        return first;
    }

    @Test
    void chunksKeepAboutTheirRows() {
        // 4 slices of 64 rows: whole ones where that is asked for, else in eights.
        Shards shards = Shards.even(1024, 4);
        Chunks slices = cut(Chunks.bySplits(shards, 8, 4, 512));
        assertEquals(64, slices.chunkRows(0));
        assertEquals(64, slices.block(0, 0).rows());
        Chunks finer = cut(Chunks.byRows(shards, 8, 8, 32));
        assertEquals(8, finer.chunkRows(0));
        assertEquals(32, finer.block(0, 0).rows());
        // 61 rows have no divisor near 8: a slice travels as a whole.
        assertEquals(61, cut(Chunks.byRows(Shards.even(4 * 4 * 61, 4), 8, 8, 32)).chunkRows(0));
    }

    private static Chunks cut(Chunks given) {
        return Algorithm.slicedRing(2, 2, false).cut(given);
    }

    @Test
    void noProgramsOrLanesAreRefused() {
        String message =
                assertThrows(IllegalArgumentException.class, () -> Algorithm.slicedRing(0, 2, true))
                        .getMessage();
        assertTrue(message.startsWith("0 programs and 2 lanes"), message);
    }
}
