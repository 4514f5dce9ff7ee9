package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.fabric.FabricException.PeerLostException;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.lang.foreign.Arena;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Rows that come with all their flags, but without the counter of their lane. */
class SummaryTest {

    private static final Shards SHARDS = Shards.even(64, 2);

    private final Problem problem = Problem.create(Arena.ofAuto(), SHARDS, 64, 24, DType.FP16, 5);

    /** A word between those for the start and the end of calls. */
    private static final long UNUSED_AT = 128;

    /** Rows of rank 0 that it multiplied of its own shard, and of its peer's. */
    private final AtomicLong own = new AtomicLong();

    private final AtomicLong remote = new AtomicLong();

    private void call(boolean waitsForSummary) {
        Ranks.run(
                2,
                fabric -> {
                    int rank = fabric.rank();
                    GemmProxy engine =
                            new GemmProxy(
                                    Gemms.portable(),
                                    row -> {},
                                    (row, rows) -> {
                                        if (rank == 0) {
                                            (row < SHARDS.rows(0) ? own : remote).addAndGet(rows);
                                        }
                                    });
                    Transport counterless =
                            MoverProxy.of(
                                    fabric,
                                    (lane, mover, index, move, flag, counter) ->
                                            mover.move(
                                                    index,
                                                    rank == 1 ? withoutCounter(move) : move,
                                                    flag,
                                                    counter));
                    AllGatherMatmulBuilder builder =
                            problem.on(counterless)
                                    .algorithm(Algorithm.MESH_PUSH)
                                    .commWorkers(1)
                                    .computeWorkers(1)
                                    .chunkRows(8)
                                    .engine(engine);
                    if (waitsForSummary) {
                        builder.waitForSummary();
                    }
                    try (AllGatherMatmul op = builder.prepare()) {
                        op.call(problem.shard(rank));
                    }
                });
    }

    /** A move that sets a word that nobody waits for, instead of its counter. */
    private static Move withoutCounter(Move move) {
        return move.counterAt() < 0
                ? move
                : new Move(
                        move.region(),
                        move.from(),
                        move.fromAt(),
                        move.fromPitch(),
                        move.to(),
                        move.toAt(),
                        move.toPitch(),
                        move.rows(),
                        move.rowBytes(),
                        UNUSED_AT,
                        -1);
    }

    /** The rank that has sent them leaves; only then can the other know that no counter comes. */
    @Test
    void noneAreMultipliedWhereCountersAreAwaited() {
        assertThrows(PeerLostException.class, () -> call(true));
        assertEquals(SHARDS.rows(0), own.get());
        assertEquals(0, remote.get());
    }

    @Test
    void allAreMultipliedWhereFlagsAre() {
        call(false);
        assertEquals(SHARDS.rows(0), own.get());
        assertEquals(SHARDS.rows(1), remote.get());
    }
}
