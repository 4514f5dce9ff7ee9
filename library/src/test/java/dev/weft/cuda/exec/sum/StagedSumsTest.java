package dev.weft.cuda.exec.sum;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.exec.HostSteps;
import dev.weft.cuda.exec.sum.SumCopyList.Made;
import dev.weft.cuda.exec.sum.SumCopyList.Move;
import dev.weft.cuda.kernel.TileSchedule.SumBlock;
import dev.weft.cuda.kernel.TileShape;
import dev.weft.exec.host.HostLanes;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Chunks;
import dev.weft.plan.Reduction;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/**
 * Sums through host memory without a GPU: copies are queued in the order of {@link HostSums}, by
 * ranks whose products are done at once, and lanes send them.
 */
class StagedSumsTest {

    private static final TileShape SHAPE = new TileShape(8, 8, 4, 3);
    private static final int CALLS = 3;
    private static final Shards[][] CASES = {
        {Shards.of(20, 13, 0, 9), Shards.of(16, 0, 32, 16)},
        {Shards.of(7, 30), Shards.of(0, 16)},
        {Shards.of(5, 5, 5), Shards.of(16, 16, 16)},
        {Shards.of(0, 0, 40, 3), Shards.of(16, 16, 16, 0)},
    };

    @Test
    void everyRankGetsTheSumsOfAll() {
        for (Shards[] shards : CASES) {
            for (boolean all : new boolean[] {false, true}) {
                run(Reduction.CHAIN, Order.WHOLE, shards, all, 24, 10);
                run(Reduction.MESH_PUSH, Order.BY_RANK, shards, all, 24, 10);
                run(Reduction.MESH_PUSH, Order.BY_RANK_BF16, shards, all, 16);
            }
        }
    }

    private static void run(
            Reduction reduction, Order order, Shards[] shards, boolean all, long... columns) {
        long n = Arrays.stream(columns).sum();
        int ranks = shards[0].ranks();
        Chunks chunks = Chunks.byRows(shards[0], n, 4, 4);
        List<StepPlan> plans = reduction.plans(new ReductionRequest(chunks, shards[1], all, order));
        Ranks.run(
                ranks,
                Duration.ofSeconds(20),
                fabric -> {
                    try (Arena arena = Arena.ofShared()) {
                        List<Long> each = Arrays.stream(columns).boxed().toList();
                        new Rank(Transport.of(fabric), plans, chunks, shards[1], each, arena)
                                .run(all);
                    }
                });
    }

    /** What a rank's product has at an element: small enough for bf16 in all sums. */
    private static float own(int rank, int call, int product, long row, long col) {
        return (rank + 1) + (call + 2 * product + 3 * row + 5 * col) % 7;
    }

    private static final class Rank {

        private final Transport fabric;
        private final Shards rows;
        private final Shards kParts;
        private final List<Long> columns;
        private final SumCopyList list;
        private final HostLanes lanes;
        private final HostSteps steps;

        /** By product and buffer: what is on the device. */
        private final Matrix[][] sums;

        private final Matrix[] results;

        /** What has come to the device in this call. */
        private final boolean[] flags;

        private final Set<List<Object>> multiplied = new HashSet<>();
        private final Semaphore copied = new Semaphore(0);
        private final AtomicReference<Throwable> failure = new AtomicReference<>();
        private final long[] firstCols;
        private int call;
        private int brought;
        private int sent;
        private int launched;

        Rank(
                Transport fabric,
                List<StepPlan> plans,
                Chunks chunks,
                Shards kParts,
                List<Long> columns,
                Arena arena) {
            this.fabric = fabric;
            this.rows = chunks.shards();
            this.kParts = kParts;
            this.columns = columns;
            this.list = SumCopyList.of(plans, fabric.rank(), chunks, columns, SHAPE, true);
            this.lanes = StagedSums.lanes(fabric, plans, chunks);
            this.steps = new HostSteps(fabric, lanes.region());
            this.flags = new boolean[list.in().size()];
            this.sums = new Matrix[columns.size()][list.buffers().size()];
            this.results = new Matrix[columns.size()];
            this.firstCols = new long[columns.size() + 1];
            for (int p = 0; p < sums.length; p++) {
                firstCols[p + 1] = firstCols[p] + columns.get(p);
                long cols = columns.get(p);
                for (int b = StepPlan.C; b < sums[p].length; b++) {
                    long count = list.buffers().get(b).rows();
                    sums[p][b] = Matrix.allocate(arena, list.type(b), count, cols);
                }
                results[p] = sums[p][StepPlan.C];
            }
        }

        void run(boolean all) {
            List<Move> leaving = list.leaving().toList();
            lanes.start(() -> tellLanes(leaving), failure::set);
            for (call = 1; call <= CALLS; call++) {
                steps.announce(call, rows);
                run();
                lanes.await();
                assertNull(failure.get());
                check(all);
                fabric.barrier();
            }
            lanes.close();
            fabric.barrier();
            lanes.region().close();
        }

        private void tellLanes(List<Move> leaving) {
            for (int i = 0; i < leaving.size(); i++) {
                copied.acquireUninterruptibly();
                int index = i;
                boolean last =
                        leaving.subList(i + 1, leaving.size()).stream()
                                .noneMatch(next -> next.maker().equals(leaving.get(index).maker()));
                if (last) {
                    lanes.done(leaving.get(i).maker());
                }
            }
        }

        /** In the order of {@link HostSums#run}. */
        private void run() {
            brought = 0;
            sent = 0;
            launched = 0;
            Arrays.fill(flags, false);
            lanes.begin(call);
            for (int p = 0; p < columns.size(); p++) {
                launched++;
                move(list.inOfProducts(p + 1));
            }
            launched = Integer.MAX_VALUE;
            move(list.beforeWhole());
            // The stream comes here when the products have ended.
            for (int p = 0; p < columns.size(); p++) {
                for (SumBlock block : list.blocks().get(p)) {
                    multiply(p, block);
                }
            }
            list.added().forEach(this::make);
            list.late().forEach(this::send);
            move(list.in().size());
            list.results().forEach(this::make);
        }

        private void move(int end) {
            while (true) {
                while (canSend()) {
                    Move move = list.out().get(sent++);
                    SumBlock made =
                            list.blocks().get(move.product()).stream()
                                    .filter(block -> block.signal() == move.word())
                                    .findFirst()
                                    .orElseThrow();
                    multiply(move.product(), made);
                    send(move);
                }
                if (brought >= end) {
                    return;
                }
                bring(list.in().get(brought++));
            }
        }

        private boolean canSend() {
            if (sent == list.out().size()) {
                return false;
            }
            Move next = list.out().get(sent);
            return next.after() <= brought && next.product() < launched;
        }

        private void multiply(int product, SumBlock block) {
            if (!multiplied.add(List.of(call, product, block))) {
                return;
            }
            assertTrue(block.flag() < 0 || flags[block.flag()]);
            Matrix c = sums[product][list.sums()];
            for (long row = block.row(); row < block.row() + block.rows(); row++) {
                for (long col = block.col(); col < block.col() + block.cols(); col++) {
                    float before = block.flag() < 0 ? 0 : c.get(row, col);
                    c.set(row, col, before + own(fabric.rank(), call, product, row, col));
                }
            }
        }

        private Matrix host(Move move) {
            return lanes.matrix(move.part().buffer(), call);
        }

        private void bring(Move move) {
            lanes.await(move.copy().signal(), lanes.arrival(move.copy()));
            Matrix device = sums[move.product()][move.part().buffer()];
            each(move, (row, col, at) -> device.set(row, col, host(move).get(row, at)));
            flags[move.word()] = true;
        }

        private void send(Move move) {
            Matrix device = sums[move.product()][move.part().buffer()];
            each(move, (row, col, at) -> host(move).set(row, at, device.get(row, col)));
            copied.release();
        }

        private interface Element {
            void at(long row, long col, long hostCol);
        }

        private void each(Move move, Element element) {
            long first = move.part().firstRow();
            for (long row = first; row < first + move.rows(); row++) {
                for (long col = move.col(); col < move.col() + move.cols(); col++) {
                    element.at(row, col, firstCols[move.product()] + col);
                }
            }
        }

        private void make(Made made) {
            for (int p = 0; p < columns.size(); p++) {
                assertTrue(made.flags().get(p) < 0 || flags[made.flags().get(p)]);
                Part into = made.rows().into();
                for (long row = 0; row < into.rows(); row++) {
                    for (long col = 0; col < columns.get(p); col++) {
                        float sum = 0;
                        for (Part part : made.rows().parts()) {
                            sum += sums[p][part.buffer()].get(part.firstRow() + row, col);
                        }
                        sums[p][into.buffer()].set(into.firstRow() + row, col, sum);
                    }
                }
            }
        }

        private void check(boolean all) {
            long first = all ? 0 : rows.firstRow(fabric.rank());
            for (int p = 0; p < columns.size(); p++) {
                for (long row = 0; row < results[p].rows(); row++) {
                    for (long col = 0; col < columns.get(p); col++) {
                        float expected = 0;
                        for (int r = 0; r < kParts.ranks(); r++) {
                            expected += kParts.rows(r) == 0 ? 0 : own(r, call, p, first + row, col);
                        }
                        assertEquals(
                                expected,
                                results[p].get(row, col),
                                "call %d, rank %d, product %d, row %d, col %d; %s"
                                        .formatted(
                                                call, fabric.rank(), p, row, col, list.results()));
                    }
                }
            }
        }
    }
}
