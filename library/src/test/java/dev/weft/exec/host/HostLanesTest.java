package dev.weft.exec.host;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Chunks through host memory without a device: shards that are staged there chunk by chunk reach
 * every rank, call by call.
 */
class HostLanesTest {

    private static final long K = 37;
    private static final int CALLS = 5;
    private static final Duration DEADLINE = Duration.ofSeconds(10);

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
        List<StepPlan> plans = algorithm.plans(new GatherRequest(chunks, 2, hosts, 1));
        Ranks.run(
                shards.ranks(),
                DEADLINE,
                fabric -> gather(Transport.of(fabric), List.copyOf(plans), chunks));
    }

    private static List<Step.Copy> arrivals(List<StepPlan> plans, int rank) {
        return plans.stream()
                .flatMap(plan -> plan.workers().stream())
                .flatMap(worker -> worker.steps().stream())
                .filter(step -> step instanceof Step.Copy)
                .map(step -> (Step.Copy) step)
                .filter(copy -> copy.to().rank() == rank)
                .toList();
    }

    private static void gather(Transport fabric, List<StepPlan> plans, Chunks chunks) {
        int rank = fabric.rank();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        HostLanes lanes = new HostLanes(fabric, plans, chunks, DType.FP16, null);
        assertEquals(0, lanes.buffersAt() % 4096);
        lanes.start(() -> stageShard(lanes, chunks, rank), failure::set);
        List<Step.Copy> arrivals = arrivals(plans, rank);
        for (int call = 1; call <= CALLS; call++) {
            lanes.begin(call);
            for (Step.Copy copy : arrivals) {
                lanes.await(copy.signal(), lanes.arrival(copy));
                check(lanes.matrix(copy.to().buffer(), call), copy, call);
            }
            lanes.await();
            assertNull(failure.get());
            assertEquals(
                    lanes.sent().stream().mapToInt(sent -> sent.of()).sum(),
                    lanes.sent().stream().mapToInt(sent -> sent.done()).sum());
            // As a rank announces the next call once it has returned from this one.
            fabric.barrier();
        }
        lanes.close();
        lanes.region().close();
    }

    /** By the row and the byte of gathered A. */
    private static byte pattern(int call, long row, long at) {
        return (byte) (31 * call + 7 * row + 3 * at + 1);
    }

    /** Chunk by chunk, as a device would bring it. */
    private static void stageShard(HostLanes lanes, Chunks chunks, int rank) {
        int call = lanes.number();
        Matrix shard = lanes.matrix(StepPlan.A, call);
        for (int c = 0; c < chunks.count(rank); c++) {
            Chunk chunk = chunks.chunk(rank, c);
            for (long row = chunk.firstRow(); row < chunk.firstRow() + chunk.rows(); row++) {
                long first = chunks.shards().firstRow(rank);
                for (long i = 0; i < 2 * chunk.cols(); i++) {
                    byte value = pattern(call, first + row, 2 * chunk.firstCol() + i);
                    shard.data().set(JAVA_BYTE, shard.offset(row, chunk.firstCol()) + i, value);
                }
            }
            lanes.staged(c);
        }
    }

    private static void check(Matrix gathered, Step.Copy copy, int call) {
        Part to = copy.to();
        for (long row = to.firstRow(); row < to.firstRow() + to.rows(); row++) {
            for (long i = 0; i < 2 * to.cols(); i++) {
                byte seen = gathered.data().get(JAVA_BYTE, gathered.offset(row, to.firstCol()) + i);
                assertEquals(pattern(call, row, 2 * to.firstCol() + i), seen, copy.toString());
            }
        }
    }

    /**
     * The transport's own gather is called once all shards are there, and raises all signals after
     * it.
     */
    @Test
    void theTransportGathersAfterAllShardsAndBeforeAllSignals() {
        Chunks chunks = Chunks.byRows(Shards.of(10, 0, 6), 8, 4, 4);
        List<StepPlan> plans =
                List.copyOf(
                        Algorithm.SEQUENTIAL.plans(new GatherRequest(chunks, 1, Hosts.one(3), 1)));
        Ranks.run(3, DEADLINE, fabric -> gatherByTransport(Transport.of(fabric), plans, chunks));
    }

    private static void gatherByTransport(Transport fabric, List<StepPlan> plans, Chunks chunks) {
        int rank = fabric.rank();
        int call = 3;
        int[] gathers = new int[1];
        AtomicReference<Throwable> failure = new AtomicReference<>();
        List<Step.Copy> arrivals = arrivals(plans, rank);
        RowGather gather =
                (in, fromAt, toAt, rowBytes, rows) -> {
                    gathers[0]++;
                    assertEquals(16, rowBytes);
                    assertArrayEquals(new long[] {10, 0, 6}, rows);
                    for (int r = 0; r < 3; r++) {
                        int all = call * chunks.count(r);
                        assertTrue(fabric.reached(in, r, StepMemory.STAGED_AT, all));
                    }
                    for (Step.Copy copy : arrivals) {
                        long at = StepMemory.wordAt(copy.signal().word());
                        assertFalse(fabric.reached(in, rank, at, call));
                    }
                };
        HostLanes lanes = new HostLanes(fabric, plans, chunks, DType.BF16, gather);
        lanes.start(() -> stageShard(lanes, chunks, rank), failure::set);
        lanes.begin(call);
        for (Step.Copy copy : arrivals) {
            Awaited what = lanes.arrival(copy);
            lanes.await(copy.signal(), what);
        }
        lanes.await();
        assertNull(failure.get());
        assertEquals(1, gathers[0]);
        lanes.close();
        fabric.barrier();
        lanes.region().close();
    }
}
