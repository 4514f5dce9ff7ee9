package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.Algorithm;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class PeerResultsTest {

    private static final Shards SHARDS = Shards.of(9, 0, 14);

    /** More than the two places of a result: what is old or too new differs. */
    private static final int INPUTS = 3;

    /** By input and rank; B has as many columns as the rank says. */
    private static List<List<Problem>> problems(Arena arena) {
        List<List<Problem>> all = new ArrayList<>();
        for (int input = 0; input < INPUTS; input++) {
            List<Problem> ranks = new ArrayList<>();
            for (int rank = 0; rank < SHARDS.ranks(); rank++) {
                ranks.add(Problem.create(arena, SHARDS, 20, 5 + 3L * rank, DType.BF16, 40 + input));
            }
            all.add(ranks);
        }
        return all;
    }

    @Test
    void everyRankReadsWhatTheCallGaveTheOthers() {
        List<GatherWriter> writers =
                List.of(Algorithm.DIRECT, Algorithm.MESH_PULL, Algorithm.slicedRing(2, 2, false));
        for (GatherWriter writer : writers) {
            read(writer);
        }
    }

    private static void read(GatherWriter writer) {
        Arena arena = Arena.ofAuto();
        List<List<Problem>> problems = problems(arena);
        // One B for all calls of a rank, so that only A differs from call to call.
        Ranks.run(
                SHARDS.ranks(),
                fabric -> {
                    int rank = fabric.rank();
                    boolean keeps = writer == Algorithm.MESH_PULL;
                    AllGatherMatmulBuilder builder =
                            AllGatherMatmul.on(fabric)
                                    .a(SHARDS, DType.BF16)
                                    .b(problems.getFirst().get(rank).b())
                                    .output(DType.FP32)
                                    .algorithm(writer)
                                    .sharedResults();
                    Pauses pauses = new Pauses(rank, 200_000);
                    try (AllGatherMatmul op =
                            (keeps ? builder.keepGathered() : builder).prepare()) {
                        for (int call = 0; call < 60; call++) {
                            Matrix a = problems.get(call % INPUTS).getFirst().a();
                            pauses.pause();
                            op.call(a.rows(SHARDS.firstRow(rank), SHARDS.rows(rank)));
                            for (int peer = 0; peer < SHARDS.ranks(); peer++) {
                                pauses.pause();
                                String what = "rank %d of %d, call %d".formatted(peer, rank, call);
                                Matrix c = op.peerProduct(peer, 0);
                                Matrix b = problems.getFirst().get(peer).b();
                                Matrix expected =
                                        Problem.unfused(
                                                dev.weft.gemm.Gemms.auto(a.dtype(), b.dtype()),
                                                Arena.ofAuto(),
                                                a,
                                                b,
                                                false,
                                                DType.FP32);
                                assertEquals(expected.describe(), c.describe(), what);
                                assertEquals(-1, expected.firstDifferentRow(c), what);
                                if (keeps) {
                                    assertTrue(a.bitwiseEquals(op.peerGathered(peer)), what);
                                }
                            }
                        }
                    }
                });
    }

    @Test
    void whatIsNotSharedIsRefusedInOneLine() {
        Arena arena = Arena.ofAuto();
        Problem problem = Problem.create(arena, SHARDS, 20, 5, DType.BF16, 1);
        Ranks.run(
                SHARDS.ranks(),
                fabric -> {
                    try (AllGatherMatmul op =
                            problem.on(fabric).algorithm(Algorithm.MESH_PULL).prepare()) {
                        assertThrows(IllegalStateException.class, () -> op.peerProduct(0, 0));
                        op.call(problem.shard(fabric.rank()));
                        String message =
                                assertThrows(
                                                IllegalStateException.class,
                                                () -> op.peerProduct(2, 0))
                                        .getMessage();
                        assertEquals(
                                "the result of rank 2 cannot be reached from rank %d: expected sharedResults() and, for gathered A, that it is kept"
                                        .formatted(fabric.rank()),
                                message);
                        assertThrows(IllegalStateException.class, () -> op.peerGathered(1));
                    }
                });
    }
}
