package dev.weft.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import dev.weft.fabric.World;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.Lane;
import dev.weft.plan.Planner;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.plan.Transfer;
import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Chunks through host memory without a GPU: shards that lie there reach every rank, call by call.
 */
class StagedLaneTest {

    private static final long K = 37;
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
        try (World world = World.threads(shards.ranks(), Duration.ofSeconds(10))) {
            world.run(
                    fabric ->
                            gather(
                                    Transport.of(fabric),
                                    Planner.plan(algorithm, chunks, 2, fabric.rank(), hosts),
                                    new StagedLayout(chunks, DType.FP16)));
        }
    }

    private static void gather(Transport fabric, RankPlan plan, StagedLayout layout) {
        List<Transfer> arrivals = StagedCopies.arrivals(plan);
        assertComplete(plan, arrivals);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        List<StagedLane> lanes = new ArrayList<>();
        List<CallThread> threads = new ArrayList<>();
        try (Region region = fabric.allocate(layout.bytes(fabric.rank()))) {
            for (Lane lane : plan.lanes()) {
                lanes.add(
                        new StagedLane(fabric, region, layout, lane, StagedCopies.bringers(plan)));
                threads.add(new CallThread("lane", lanes.getLast(), failure::set));
            }
            for (int call = 1; call <= CALLS; call++) {
                int number = call;
                threads.forEach(thread -> thread.start(number));
                stageShard(fabric, region, layout, call);
                for (Transfer transfer : arrivals) {
                    awaitChunk(fabric, region, layout, transfer, call);
                }
                threads.forEach(CallThread::await);
                assertNull(failure.get());
                // As a rank announces the next call once it has returned from this one.
                fabric.barrier();
            }
            threads.forEach(CallThread::close);
            lanes.forEach(StagedLane::close);
        }
    }

    /** Every chunk of every other rank, once. */
    private static void assertComplete(RankPlan plan, List<Transfer> arrivals) {
        Set<Integer> tags = new HashSet<>();
        arrivals.forEach(transfer -> tags.add(transfer.tag()));
        int others = plan.chunks().total() - plan.chunks().count(plan.rank());
        assertEquals(others, arrivals.size());
        assertEquals(others, tags.size());
    }

    private static byte pattern(int call, int source, long at) {
        return (byte) (31 * call + 7 * source + 3 * at + 1);
    }

    /** Chunk by chunk, as a device would bring it. */
    private static void stageShard(Transport fabric, Region region, StagedLayout layout, int call) {
        int rank = fabric.rank();
        MemorySegment part = region.part(rank);
        for (int c = 0; c < layout.chunks().count(rank); c++) {
            Chunk chunk = layout.chunks().chunk(rank, c);
            for (long row = 0; row < chunk.rows(); row++) {
                long at = layout.inShard(chunk) + row * layout.pitchBytes();
                for (long i = at; i < at + layout.width(chunk); i++) {
                    part.set(JAVA_BYTE, layout.shardAt(rank, call & 1) + i, pattern(call, rank, i));
                }
            }
            fabric.publish(region, StagedLayout.STAGED_AT, layout.staged(call, rank, c));
        }
    }

    private static void awaitChunk(
            Transport fabric, Region region, StagedLayout layout, Transfer transfer, int call) {
        Chunk chunk = layout.chunks().chunk(transfer.source(), transfer.chunk());
        fabric.await(
                region,
                fabric.rank(),
                layout.flagAt(transfer.tag()),
                call,
                Awaited.chunk(transfer.from(), transfer.source(), transfer.chunk()));
        MemorySegment part = region.part(fabric.rank());
        long landing = layout.landingAt(fabric.rank(), call & 1) + layout.inGathered(chunk);
        for (long row = 0; row < chunk.rows(); row++) {
            for (long i = 0; i < layout.width(chunk); i++) {
                long inRow = row * layout.pitchBytes() + i;
                byte expected = pattern(call, transfer.source(), layout.inShard(chunk) + inRow);
                assertEquals(expected, part.get(JAVA_BYTE, landing + inRow), transfer.toString());
            }
        }
    }
}
