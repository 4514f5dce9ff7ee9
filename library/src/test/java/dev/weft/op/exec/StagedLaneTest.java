package dev.weft.op.exec;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Chunks through host memory without a GPU: shards that are staged there chunk by chunk reach every
 * rank, call by call.
 */
class StagedLaneTest {

    private static final long K = 37;
    private static final long PITCH_BYTES = 80;
    private static final int CALLS = 5;

    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"AUTO", "DIRECT"},
            mode = EnumSource.Mode.EXCLUDE)
    void everyRowArrives(Algorithm algorithm) {
        run(algorithm, Shards.of(40, 0, 59, 1), Hosts.one(4), 16);
        run(algorithm, Shards.even(30, 3), Hosts.apart(3), 0);
        run(algorithm, Shards.of(11, 7, 0, 20, 5), Hosts.of(2, 2, 1), 0);
    }

    private static void run(Algorithm algorithm, Shards shards, Hosts hosts, long chunkCols) {
        Chunks rows = Chunks.byRows(shards, K, 4, 8);
        Chunks chunks = chunkCols > 0 ? rows.withChunkCols(chunkCols) : rows;
        Ranks.run(
                shards.ranks(),
                Duration.ofSeconds(10),
                fabric ->
                        gather(
                                Transport.of(fabric),
                                algorithm.plans(chunks, 2, hosts).get(fabric.rank())));
    }

    private static void gather(Transport fabric, RankPlan plan) {
        OperatorMemory memory =
                OperatorMemory.staged(fabric, plan.chunks(), DType.FP16, PITCH_BYTES);
        Workspace workspace = Workspace.of(plan, fabric, memory, false);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        List<LaneWorker> lanes = new ArrayList<>();
        for (Lane lane : plan.lanes()) {
            lanes.add(new LaneWorker(lane, workspace));
        }
        try (Team team =
                new Team("lanes", lanes.toArray(Runnable[]::new), task -> {}, failure::set)) {
            for (int call = 1; call <= CALLS; call++) {
                workspace.state().call = call;
                workspace.state().view = View.PIPELINED;
                team.start();
                stageShard(fabric, memory, plan.chunks(), call);
                for (Lane lane : plan.arrivals()) {
                    for (Transfer transfer : lane.transfers()) {
                        awaitChunk(workspace, transfer);
                    }
                }
                team.await();
                assertNull(failure.get());
                // As a rank announces the next call once it has returned from this one.
                fabric.barrier();
            }
        }
        lanes.forEach(LaneWorker::close);
        memory.region().close();
    }

    private static byte pattern(int call, int source, long at) {
        return (byte) (31 * call + 7 * source + 3 * at + 1);
    }

    /** Chunk by chunk, as a device would bring it. */
    private static void stageShard(
            Transport fabric, OperatorMemory memory, Chunks chunks, int call) {
        int rank = fabric.rank();
        MemorySegment part = memory.region().part(rank);
        for (int c = 0; c < chunks.count(rank); c++) {
            Chunk chunk = chunks.chunk(rank, c);
            for (long row = 0; row < chunk.rows(); row++) {
                long at = memory.inShard(chunk) + row * PITCH_BYTES;
                for (long i = at; i < at + 2 * chunk.cols(); i++) {
                    part.set(JAVA_BYTE, memory.shardAt(rank, call & 1) + i, pattern(call, rank, i));
                }
            }
            fabric.publish(memory.region(), OperatorMemory.STAGED_AT, memory.ready(call, rank, c));
        }
    }

    private static void awaitChunk(Workspace workspace, Transfer transfer) {
        Transport fabric = workspace.fabric();
        OperatorMemory memory = workspace.memory();
        int call = workspace.state().call;
        int source = transfer.source();
        Chunk chunk = workspace.plan().chunks().chunk(source, transfer.chunk());
        fabric.await(
                memory.region(),
                fabric.rank(),
                memory.flagAt(source, chunk.index()),
                call,
                workspace.arrivals().of(source, chunk.index()));
        MemorySegment part = memory.region().part(fabric.rank());
        long landing = memory.landingAt(fabric.rank(), call & 1) + memory.inLanding(chunk);
        for (long row = 0; row < chunk.rows(); row++) {
            for (long i = 0; i < 2 * chunk.cols(); i++) {
                long inRow = row * PITCH_BYTES + i;
                byte expected = pattern(call, source, memory.inShard(chunk) + inRow);
                assertEquals(expected, part.get(JAVA_BYTE, landing + inRow), transfer.toString());
            }
        }
    }
}
