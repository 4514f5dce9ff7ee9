package dev.weft.cuda.exec.sum;

import dev.weft.cuda.exec.DeviceSteps;
import dev.weft.cuda.exec.DeviceSteps.RowSum;
import dev.weft.cuda.kernel.Origin;
import dev.weft.cuda.kernel.TileSchedule.SumBlock;
import dev.weft.cuda.kernel.TileShape;
import dev.weft.plan.Chunks;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * A rank's steps of sums as blocks of a product and copies on two streams, one for what comes and
 * one for what goes. A flag tells of each copy that has come, and a counter of each block of which
 * something goes: it counts tiles that are stored. Pure.
 *
 * @param buffers of the plan: sums are in those after C
 * @param sums the buffer that products write to; -1 if this rank multiplies nothing
 * @param blocks by product, in the order in which they are multiplied
 * @param in copies to this rank: first those that the product starts from, in its order, then those
 *     that are added, then whole sums
 * @param beforeWhole how many of them come before whole sums
 * @param out copies from this rank, in the order in which they can start
 * @param late copies of rows that this rank has added up
 * @param origins by flag: whose rows it tells of
 * @param counters how many there are
 * @param added rows that are added up to be sent
 * @param results rows of the result
 */
public record SumCopyList(
        List<Buffer> buffers,
        int sums,
        List<List<SumBlock>> blocks,
        List<Move> in,
        int beforeWhole,
        List<Move> out,
        List<Move> late,
        List<Origin> origins,
        int counters,
        List<Made> added,
        List<Made> results) {

    /**
     * What a copy should have at least. With copies both ways at once, an H200 moved 46 GB/s each
     * way in pieces of 2 MiB, 49.5 in pieces of 8 MiB and 50.5 in larger ones.
     */
    private static final long MOVE_BYTES = 8L << 20;

    /** Likewise at both ends, where a product waits for the first and a call for the last. */
    private static final long END_MOVE_BYTES = 2L << 20;

    /** Blocks at the end of a call: more than are multiplied when the last sums come. */
    private static final int END_BLOCKS = 4;

    /**
     * A copy of some columns of a chunk.
     *
     * @param product its number
     * @param copy the step that it is a part of; one of them if several send the same
     * @param part the chunk at this rank
     * @param col its first column in the product
     * @param word of a copy to this rank, the flag that it raises; of another one, what it waits
     *     for: a counter if it lies among the sums that are multiplied, else a flag; -1 for none
     * @param after copies to this rank that must be queued before
     * @param maker of a copy from this rank, the step that writes the chunk; null if it has come
     */
    public record Move(
            int product,
            Step.Copy copy,
            Part part,
            long col,
            long cols,
            int word,
            int after,
            Step maker) {

        /** The first row in C. */
        long row() {
            return copy.firstRow();
        }

        long rows() {
            return part.rows();
        }
    }

    /**
     * Rows that are made at once.
     *
     * @param flags by product: of the copy after which all parts have come; -1 if none comes
     */
    record Made(RowSum rows, List<Integer> flags) {}

    public SumCopyList {
        buffers = List.copyOf(buffers);
        blocks = blocks.stream().map(List::copyOf).toList();
        in = List.copyOf(in);
        out = List.copyOf(out);
        late = List.copyOf(late);
        origins = List.copyOf(origins);
        added = List.copyOf(added);
        results = List.copyOf(results);
    }

    /**
     * @param plans of all ranks
     * @param chunks what flags tell of
     * @param columns of each product
     * @param staged whether threads of the host send what this rank copies to host memory: then it
     *     copies each chunk once, and nothing that is handed on
     */
    public static SumCopyList of(
            List<StepPlan> plans,
            int rank,
            Chunks chunks,
            List<Long> columns,
            TileShape shape,
            boolean staged) {
        return new Writer(plans, rank, chunks, columns, shape, staged).write();
    }

    /**
     * How many of the copies to this rank bring what the first {@code count} products start from.
     */
    public int inOfProducts(int count) {
        return (int) in.stream().filter(m -> isMultiplied(m) && m.product() < count).count();
    }

    /** Whether a copy brings sums that a product starts from, or takes what it has stored. */
    boolean isMultiplied(Move move) {
        return move.part().buffer() == sums;
    }

    /** Copies from this rank, in the order in which they are queued. */
    Stream<Move> leaving() {
        return Stream.concat(out.stream(), late.stream());
    }

    /** The type of a buffer's elements. */
    DType type(int buffer) {
        return buffers.get(buffer).kind() == Buffer.Kind.ROUNDED_SUMS ? DType.BF16 : DType.FP32;
    }

    private static final class Writer {

        private final StepPlan plan;
        private final Chunks chunks;
        private final List<Long> columns;
        private final TileShape shape;
        private final boolean staged;
        private final List<Step.Multiply> products = new ArrayList<>();

        /** In the order of rows. */
        private final List<Step.Add> adds = new ArrayList<>();

        /** By where they go, what comes to this rank. */
        private final Map<Part, Step.Copy> arriving = new LinkedHashMap<>();

        /** By where it lies, what this rank sends. */
        private final Map<Part, List<Step.Copy>> leaving = new HashMap<>();

        /** By product and part: the flag of the copy after which it is there. */
        private final List<Map<Part, Integer>> lastFlags = new ArrayList<>();

        private final List<Move> in = new ArrayList<>();
        private final List<Move> out = new ArrayList<>();
        private final List<Move> late = new ArrayList<>();
        private final List<Origin> origins = new ArrayList<>();
        private int counters;

        Writer(
                List<StepPlan> plans,
                int rank,
                Chunks chunks,
                List<Long> columns,
                TileShape shape,
                boolean staged) {
            this.plan = plans.get(rank);
            this.staged = staged;
            this.chunks = chunks;
            this.columns = columns;
            this.shape = shape;
            columns.forEach(n -> lastFlags.add(new HashMap<>()));
            plans.stream().flatMap(of -> DeviceSteps.of(of, Step.Copy.class)).forEach(this::index);
            DeviceSteps.of(plan).forEach(this::add);
            adds.sort(Comparator.comparingLong(Step.Add::firstRow));
        }

        private void index(Step.Copy copy) {
            if (copy.to().rank() == plan.rank()) {
                arriving.put(copy.to(), copy);
            } else if (copy.from().rank() == plan.rank()) {
                leaving.computeIfAbsent(copy.from(), part -> new ArrayList<>()).add(copy);
            }
        }

        private void add(Step step) {
            if (step instanceof Step.Multiply multiply) {
                boolean fits =
                        multiply.a().rank() == plan.rank()
                                && multiply.a().firstRow() == multiply.into().firstRow()
                                && multiply.resume() == arriving.containsKey(multiply.into());
                if (!fits) {
                    throw new IllegalArgumentException(
                            "%s: expected rows of this rank's A, which start from zero or from sums that come"
                                    .formatted(multiply));
                }
                products.add(multiply);
            } else if (step instanceof Step.Add add) {
                adds.add(add);
            }
        }

        SumCopyList write() {
            List<List<SumBlock>> blocks = new ArrayList<>();
            for (int i = 0; i < columns.size(); i++) {
                blocks.add(new ArrayList<>());
                for (int at = 0; at < products.size(); at++) {
                    boolean first = i == 0 && at == 0;
                    boolean last = i == columns.size() - 1 && at >= products.size() - END_BLOCKS;
                    addBlock(i, products.get(at), first || last, blocks.getLast());
                }
            }
            List<Made> added = new ArrayList<>();
            for (Step.Add add : adds) {
                boolean toC = add.into().buffer() == StepPlan.C;
                if (!toC || add.addends().size() > 1) {
                    addUp(add, !toC);
                }
                if (!toC) {
                    added.add(made(add));
                }
            }
            int beforeWhole = in.size();
            arriving.values().stream()
                    .filter(copy -> !lastFlags.getFirst().containsKey(copy.to()))
                    .sorted(Comparator.comparingLong(Step.Copy::firstRow))
                    .forEach(this::addWhole);
            List<List<SumBlock>> narrowed = blocks.stream().map(this::narrowed).toList();
            int sums = products.isEmpty() ? -1 : products.getFirst().into().buffer();
            return new SumCopyList(
                    plan.buffers(),
                    sums,
                    narrowed,
                    in,
                    beforeWhole,
                    out,
                    late,
                    origins,
                    counters,
                    added,
                    results());
        }

        /** Columns of a slice: whole tiles, and enough bytes for a copy. */
        private long sliceCols(long rows, boolean atAnEnd) {
            long bytes = atAnEnd ? END_MOVE_BYTES : MOVE_BYTES;
            long cols = Math.ceilDiv(bytes, Math.max(1, rows) * Float.BYTES);
            return Math.ceilDiv(cols, shape.width()) * shape.width();
        }

        private interface Slices {
            void add(long col, long cols);
        }

        private void slice(int product, long rows, boolean atAnEnd, Slices to) {
            long each = sliceCols(rows, atAnEnd);
            for (long col = 0; col < columns.get(product); col += each) {
                to.add(col, Math.min(each, columns.get(product) - col));
            }
        }

        private void addBlock(
                int product, Step.Multiply block, boolean atAnEnd, List<SumBlock> blocks) {
            Part part = block.into();
            List<Step.Copy> sends = leaving(part);
            slice(
                    product,
                    part.rows(),
                    atAnEnd,
                    (col, cols) -> {
                        int flag =
                                block.resume() ? fetch(product, arriving.get(part), col, cols) : -1;
                        int counter = sends.isEmpty() ? -1 : counters++;
                        for (Step.Copy copy : sends) {
                            out.add(move(product, copy, col, cols, counter, block));
                        }
                        blocks.add(
                                new SumBlock(
                                        part.firstRow(),
                                        part.rows(),
                                        col,
                                        cols,
                                        flag,
                                        counter,
                                        false));
                    });
        }

        /** A copy for each that gets the part, or one for all. */
        private List<Step.Copy> leaving(Part part) {
            List<Step.Copy> all = leaving.getOrDefault(part, List.of());
            return all.subList(0, Math.min(all.size(), staged ? 1 : all.size()));
        }

        private Move move(int product, Step.Copy copy, long col, long cols, int word, Step maker) {
            return new Move(product, copy, copy.from(), col, cols, word, in.size(), maker);
        }

        private int fetch(int product, Step.Copy copy, long col, long cols) {
            int flag = origins.size();
            origins.add(origin(copy.firstRow()));
            in.add(new Move(product, copy, copy.to(), col, cols, flag, in.size(), null));
            lastFlags.get(product).put(copy.to(), flag);
            return flag;
        }

        private Origin origin(long row) {
            int source = DeviceSteps.source(row, chunks.shards());
            long inShard = row - chunks.shards().firstRow(source);
            return new Origin(source, Math.toIntExact(inShard / chunks.chunkRows(source)));
        }

        /** Brings what is added, and sends the sum if others get it. */
        private void addUp(Step.Add add, boolean sent) {
            for (int i = 0; i < columns.size(); i++) {
                int product = i;
                slice(
                        product,
                        add.into().rows(),
                        false,
                        (col, cols) -> {
                            for (Part part : add.addends()) {
                                if (arriving.containsKey(part)) {
                                    fetch(product, arriving.get(part), col, cols);
                                }
                            }
                            for (Step.Copy copy :
                                    sent ? leaving(add.into()) : List.<Step.Copy>of()) {
                                late.add(move(product, copy, col, cols, -1, add));
                            }
                        });
                lastFlags.get(product).put(add.into(), flag(product, add));
            }
        }

        /** Whole sums that come, and that may be handed on; threads of the host do that alone. */
        private void addWhole(Step.Copy copy) {
            for (int i = 0; i < columns.size(); i++) {
                int product = i;
                slice(
                        product,
                        copy.to().rows(),
                        false,
                        (col, cols) -> {
                            int flag = fetch(product, copy, col, cols);
                            for (Step.Copy next :
                                    staged ? List.<Step.Copy>of() : leaving(copy.to())) {
                                out.add(move(product, next, col, cols, flag, null));
                            }
                        });
            }
        }

        /**
         * The last round's tiles are narrow, so that they end soon after the last sums have come.
         */
        private List<SumBlock> narrowed(List<SumBlock> blocks) {
            List<SumBlock> all = new ArrayList<>(blocks);
            long left = shape.workers();
            for (int i = all.size() - 1; i >= 0 && left > 0; i--) {
                SumBlock b = all.get(i);
                long across = Math.ceilDiv(b.cols(), shape.narrowWidth());
                left -= across * Math.ceilDiv(b.rows(), shape.rows());
                all.set(
                        i,
                        new SumBlock(
                                b.row(), b.rows(), b.col(), b.cols(), b.flag(), b.signal(), true));
            }
            return all;
        }

        private int flag(int product, Step.Add add) {
            return add.addends().stream()
                    .mapToInt(part -> lastFlags.get(product).getOrDefault(part, -1))
                    .max()
                    .orElse(-1);
        }

        private Made made(Step.Add add) {
            List<Integer> flags = new ArrayList<>();
            for (int i = 0; i < columns.size(); i++) {
                // A product ends after the sums that it starts from have come.
                boolean multiplied = add.addends().stream().allMatch(this::isMultiplied);
                flags.add(multiplied ? -1 : flag(i, add));
            }
            return new Made(new RowSum(add.addends(), add.firstRow(), add.into()), flags);
        }

        private boolean isMultiplied(Part part) {
            return !products.isEmpty() && part.buffer() == products.getFirst().into().buffer();
        }

        /** Rows that wait for nothing but the product are one; others are made as they come. */
        private List<Made> results() {
            List<Made> results = new ArrayList<>();
            for (Step.Add add : adds) {
                if (add.into().buffer() != StepPlan.C) {
                    continue;
                }
                Made one = made(add);
                Made before = results.isEmpty() ? null : results.getLast();
                if (before != null
                        && before.flags().equals(one.flags())
                        && one.flags().contains(-1)
                        && before.rows().isFollowedBy(one.rows())) {
                    results.removeLast();
                    one = new Made(before.rows().joined(one.rows()), before.flags());
                }
                results.add(one);
            }
            return results;
        }
    }
}
