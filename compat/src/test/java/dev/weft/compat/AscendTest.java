package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.op.AllGatherMatmul;
import dev.weft.plan.GatherView.Lane;
import dev.weft.plan.GatherView.Move;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.AscendChunkRule;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AscendTest {

    /** Worked out by hand from the rule; the first row is the example's default. */
    @ParameterizedTest
    @CsvSource({
        // rows of a source, K, base-m, base-n -> tiles, chunk rows, chunk columns
        "1024, 2048, 128, 256, 4, 128, 1024",
        "8192, 4096, 128, 256, 8, 128, 2048",
        "2048, 16384, 128, 256, 8, 128, 2048",
        "65536, 4096, 128, 256, 64, 512, 4096",
        "1000000, 4096, 128, 256, 64, 512, 4096",
        "1024, 512, 128, 256, 4, 256, 512",
        "1024, 1536, 128, 256, 4, 128, 1536",
        "0, 2048, 128, 256, 4, 128, 1024"
    })
    void chunksFollowTheExamplesRule(
            long rows, long k, long baseM, long baseN, long tiles, long chunkRows, long chunkCols) {
        AscendChunkRule rule = AscendChunkRule.of(rows, k, baseM, baseN);
        assertEquals(new AscendChunkRule(chunkRows, chunkCols, tiles), rule);
    }

    @Test
    void theOperatorPushesWaitsForSummariesAndIsExact() {
        Shards shards = Shards.of(70, 0, 33, 64);
        Arena arena = Arena.ofAuto();
        Matrix a = Matrix.allocate(arena, DType.FP16, shards.totalRows(), 96);
        Matrix b = Matrix.allocate(arena, DType.FP16, 96, 24);
        new NormalData(4, 0).fill(a);
        new NormalData(4, 1).fill(b);
        Gemm gemm = Gemms.auto(a.dtype(), b.dtype());
        PackedB packed = gemm.pack(b, false, arena);
        Matrix unfused = Matrix.allocate(arena, DType.FP32, a.rows(), 24);
        gemm.multiply(a, 0, a.rows(), packed, unfused, 0, gemm.scratch(96, 24, arena));
        Ranks.run(
                4,
                fabric -> {
                    int rank = fabric.rank();
                    Matrix shard = a.rows(shards.firstRow(rank), shards.rows(rank));
                    for (int commBlocks : List.of(1, 2, 3, 7)) {
                        try (AllGatherMatmul op =
                                Ascend.allGatherGemm(
                                        fabric, shards, DType.FP16, b, 8, 8, 2, commBlocks)) {
                            assertEquals("mesh-push", op.plan().name());
                            assertTrue(op.plan().chunks().colChunks() > 1, "K is tiled");
                            for (int call = 0; call < 4; call++) {
                                Matrix c = op.call(shard).product();
                                assertEquals(-1, unfused.firstDifferentRow(c));
                            }
                        }
                    }
                });
    }

    /**
     * perDest = max(1, comm blocks / peers): each block serves one destination's range of chunks.
     */
    @Test
    void communicationBlocksServeDestinationsAsInTheExample() {
        Shards shards = Shards.even(240, 4);
        Arena arena = Arena.ofAuto();
        Matrix b = Matrix.allocate(arena, DType.FP16, 64, 8);
        Ranks.run(
                4,
                fabric -> {
                    try (AllGatherMatmul op =
                            Ascend.allGatherGemm(fabric, shards, DType.FP16, b, 4, 16, 1, 6)) {
                        List<Lane> lanes = FgccProblem.plan(op).lanes();
                        assertEquals(6, lanes.size());
                        for (Lane lane : lanes) {
                            assertEquals(
                                    1,
                                    lane.moves().stream().map(Move::to).distinct().count(),
                                    "one destination per block");
                        }
                    }
                });
    }

    /** Work items are (destination, chunk), and block b takes numbers b, b + blocks, and so on. */
    @Test
    void fewerBlocksThanDestinationsAreDealtSingleChunks() {
        Shards shards = Shards.even(240, 4);
        Arena arena = Arena.ofAuto();
        Matrix b = Matrix.allocate(arena, DType.FP16, 64, 8);
        Ranks.run(
                4,
                fabric -> {
                    try (AllGatherMatmul op =
                            Ascend.allGatherGemm(fabric, shards, DType.FP16, b, 20, 8, 1, 2)) {
                        List<Lane> lanes = FgccProblem.plan(op).lanes();
                        assertEquals(2, lanes.size());
                        int count = op.plan().chunks().count(fabric.rank());
                        assertTrue(op.plan().chunks().colChunks() > 1, "K is tiled");
                        for (int item = 0; item < 3 * count; item++) {
                            Move transfer = lanes.get(item % 2).moves().get(item / 2);
                            assertEquals(item % count, transfer.chunk());
                            int distance = item / count + 1;
                            assertEquals((fabric.rank() + distance) % 4, transfer.to());
                        }
                    }
                });
    }
}
