package dev.weft.op;

import dev.weft.fabric.transport.Agreement;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.LargePages;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.op.exec.Dispatch;
import dev.weft.op.exec.EpilogueSteps;
import dev.weft.plan.Shards;
import dev.weft.plan.group.Experts;
import dev.weft.plan.group.RowGroups;
import dev.weft.search.Candidate;
import dev.weft.search.Trial;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * The part of a description that all operators share: right-hand sides, types, the engine, chunks
 * of rows and workers. Used by one thread.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 * @param <B> the type of the builder itself
 */
public abstract class MatmulBuilder<M, B extends MatmulBuilder<M, B>> {

    private final List<Side> sides = new ArrayList<>();
    private DType aType;
    private DType outType;
    private Scaling outScaling;
    private String engine;
    private Gemm gemm;
    private long chunkRows;
    private int splitsPerRank;
    private int computeWorkers;
    private Epilogue epilogue = Epilogue.none();

    /** The shape of one B. */
    record Side(String text, DType dtype, long k, long n) {}

    /** Null unless rows go to experts, each with its own B. */
    private OfExperts ofExperts;

    /**
     * The right-hand sides of experts, in their order.
     *
     * @param each how many an expert has: two if an epilogue joins them
     * @param side the shape of all
     * @param rows this rank's rows, by expert
     * @param wanted by rank: the rows that its experts get
     * @param added whether products are added, and not the other way round
     */
    record OfExperts(
            Experts experts, int each, Side side, RowGroups rows, BitSet[] wanted, boolean added) {

        /** How many times fewer rows an expert gets than there are. */
        long timesFewer() {
            return Math.max(1, experts.count() / experts.perRow());
        }
    }

    /** Those Bs that were packed before. */
    private final List<Weights> weights = new ArrayList<>();

    private long whichAreWeights;

    protected MatmulBuilder() {}

    protected abstract B self();

    /** Adds a right-hand side, [K, N]. Several share A; each gives a product. */
    public final B b(M b) {
        return b(b, false);
    }

    /** Adds a right-hand side, [K, N], or [N, K] if {@code transposed}. */
    public abstract B b(M b, boolean transposed);

    /** Notes the shape of a B that was given. */
    protected final B side(
            String description, DType dtype, long rows, long cols, boolean transposed) {
        sides.add(shape(description, dtype, rows, cols, transposed));
        return self();
    }

    /** Notes a B that was packed before. */
    final B given(Weights packed) {
        whichAreWeights |= 1L << sides.size();
        sides.add(packed.side());
        weights.add(packed);
        return self();
    }

    static Side shape(String text, DType dtype, long rows, long cols, boolean transposed) {
        return new Side(
                text + (transposed ? " transposed" : ""),
                dtype,
                transposed ? cols : rows,
                transposed ? rows : cols);
    }

    final long whichAreWeights() {
        return whichAreWeights;
    }

    /** In the order in which they were given. */
    final List<Weights> weights() {
        return weights;
    }

    /** The byte that fills shards in trials: no zero and no NaN in any type. */
    protected static final byte ORDINARY = 0x3f;

    /**
     * A trial of candidates, each as a prepared operator.
     *
     * @param fill writes ordinary values into a shard: memory that was never written is read faster
     *     than other memory, and multiplying zeros needs less power
     */
    @SuppressWarnings("exports")
    protected static <M, O extends Operator<M>> Trial<O> trial(
            Function<Candidate, O> operators, Consumer<M> fill) {
        return new OperatorTrial<>(operators, fill);
    }

    private record OperatorTrial<M, O extends Operator<M>>(
            Function<Candidate, O> operators, Consumer<M> fill) implements Trial<O> {

        /** Calls use two places for A in turn. */
        private static final int PLACES = 2;

        @Override
        public O prepare(Candidate candidate) {
            O operator = operators.apply(candidate);
            try {
                for (int copy = 0; copy < PLACES; copy++) {
                    fill.accept(operator.nextShard());
                    callNs(operator);
                }
                return operator;
            } catch (RuntimeException | Error e) {
                operator.close();
                throw e;
            }
        }

        @Override
        public long callNs(O operator) {
            return operator.callInPlace(View.PIPELINED).elapsedNs();
        }

        @Override
        public void close(O operator) {
            operator.close();
        }
    }

    /** Memory for a result of a B with N columns. */
    final Matrix result(long rows, long n, Arena arena) {
        long cols = resultCols(n);
        long bytes = Matrix.contiguousBytes(outType(), rows, cols);
        return Matrix.of(LargePages.allocate(bytes, arena).fill((byte) 0), outType(), rows, cols);
    }

    /** Stands for the Bs of a rank that has no experts: it has their columns. */
    final PackedB nothing(Gemm engine, Arena arena) {
        long n = ofExperts.side().n();
        DType type = multiplied(aType);
        return engine.packed(
                0, n, type, LargePages.allocate(engine.packedBytes(0, n, type), arena));
    }

    /** Refuses memory that this thread cannot read, instead of failing later, deep inside. */
    protected static void checkAccess(Matrix matrix) {
        if (!matrix.data().isAccessibleBy(Thread.currentThread())) {
            throw new IllegalArgumentException(
                    "%s is in an arena that is confined to another thread: expected one of"
                                    .formatted(matrix.describe())
                            + " Arena.ofShared() or Arena.ofAuto(), since every rank reads it");
        }
    }

    /** The type of the products; by default fp32, the type of their sums. */
    public final B output(DType dtype) {
        if (dtype.isScaled()) {
            throw new IllegalArgumentException(
                    "products of %s: expected fp32, fp16 or bf16".formatted(dtype.label()));
        }
        this.outType = dtype;
        this.outScaling = null;
        return self();
    }

    /**
     * Products of 8 bits: a result is a matrix of rows with their scales in front, which {@link
     * ScaledMatrix#inRows} reads and the next operator takes as {@code scaledA}. Each row is
     * quantized once it is whole, as {@link ScaledMatrix#rowsOf} would.
     *
     * @param dtype e4m3 or e5m2
     * @param scaling by row, or by block
     */
    public final B output(DType dtype, Scaling scaling) {
        if (!dtype.isScaled() || scaling == Scaling.TENSOR) {
            throw new IllegalArgumentException(
                    "products of %s with scales by %s: expected e4m3 or e5m2, by row or block"
                            .formatted(dtype.label(), scaling.label()));
        }
        this.outType = dtype;
        this.outScaling = scaling;
        return self();
    }

    /**
     * The steps that are applied to the products before they are rounded; by default none. They are
     * checked against the products when the operator is prepared.
     */
    public final B epilogue(Epilogue wanted) {
        this.epilogue = Objects.requireNonNull(wanted, "epilogue");
        return self();
    }

    /** The given epilogue, or none. */
    final Epilogue epilogue() {
        return epilogue;
    }

    /** Whether sums are more than just rounded. */
    protected final boolean hasEpilogue() {
        return !epilogue.isNone() || outScaling != null;
    }

    /** The given steps, if they fit the right-hand sides. */
    @SuppressWarnings("exports")
    protected final EpilogueSteps epilogueSteps() {
        List<Long> columns =
                ofExperts == null
                        ? columns()
                        : Collections.nCopies(ofExperts.each(), ofExperts.side().n());
        EpilogueSteps steps = epilogue.fitting(columns);
        if (outScaling == null) {
            return steps;
        }
        long most = columns.stream().mapToLong(Long::longValue).max().orElse(0);
        return steps.with(new EpilogueSteps.ScaledRows(outScaling, Math.toIntExact(most)));
    }

    /**
     * The engine, by name: on a GPU {@code gated} or {@code cublas}; on the CPU
     *
     * <ul>
     *   <li>{@code auto}, the default: AMX for bf16 if every rank's machine has it, else {@code
     *       portable};
     *   <li>{@code portable}: the fastest engine whose bits are the same on every machine;
     *   <li>{@code native} (machine code), {@code vector} or {@code scalar}: one of those;
     *   <li>{@code amx}: bf16 only, with its own bits;
     *   <li>{@code openblas}, which promises no particular bits.
     * </ul>
     */
    public B engine(String name) {
        this.engine = name;
        this.gemm = null;
        return self();
    }

    /** Like {@link #engine(String)}, for engines without a name, such as those of tests. */
    final B engine(Gemm nameless) {
        this.gemm = nameless;
        return self();
    }

    /** The given engine without a name, or null. */
    final Gemm gemm() {
        return gemm;
    }

    /** Cuts shards into chunks of this many rows, instead of Weft's own choice. */
    public final B chunkRows(long rows) {
        this.chunkRows = positive("chunk rows", rows);
        return self();
    }

    /** Cuts every shard into this many chunks, instead of Weft's own choice. */
    public final B splitsPerRank(int splits) {
        this.splitsPerRank = (int) positive("splits per rank", splits);
        return self();
    }

    /**
     * How many workers multiply at the same time on this rank: threads, by default its share of the
     * cores; or thread blocks of a GPU's grid, by default as many as fit on the GPU.
     */
    public final B computeWorkers(int workers) {
        this.computeWorkers = (int) positive("compute workers", workers);
        return self();
    }

    protected static long positive(String what, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(value + " " + what + ": expected at least one");
        }
        return value;
    }

    /**
     * Agrees with the other ranks and reserves everything that calls need. Collective. Matrices in
     * host memory that were given as B may be freed afterwards.
     */
    public abstract Operator<M> prepare();

    /** The shapes of the given Bs. */
    final List<Side> sides() {
        return sides;
    }

    /** N of each B; of experts, the columns that a rank's rows are multiplied by on average. */
    final List<Long> columns() {
        if (ofExperts == null) {
            return sides.stream().map(Side::n).toList();
        }
        if (ofExperts.added()) {
            return List.of(ofExperts.side().n());
        }
        Experts experts = ofExperts.experts();
        long all = ofExperts.side().n() * experts.perRow();
        long average = Math.ceilDiv(all, experts.ofRanks().ranks());
        return Collections.nCopies(ofExperts.each(), average);
    }

    /** The experts, as far as plans are chosen for them; null if there are none. */
    final Experts experts() {
        return ofExperts == null ? null : ofExperts.experts();
    }

    /** Null unless rows go to experts. */
    final OfExperts ofExperts() {
        return ofExperts;
    }

    /**
     * Notes that the right-hand sides are those of experts. Collective.
     *
     * @param most the most rows of each rank in a call
     * @param added whether products are added, and not the other way round
     */
    final void ofExperts(Experts experts, Transport fabric, Shards most, boolean added) {
        if (!added && epilogue.addsResidual()) {
            throw new IllegalArgumentException(
                    "epilogue %s of the rows of experts: expected no residual, as rows differ from call to call"
                            .formatted(epilogue));
        }
        if (added && epilogue.joins()) {
            throw new IllegalArgumentException(
                    "epilogue %s of the sums of experts: expected none that joins two products"
                            .formatted(epilogue));
        }
        if (experts.ofRanks().ranks() != fabric.size()) {
            throw new IllegalArgumentException(
                    "experts %s on %d ranks: expected a number for each rank"
                            .formatted(experts.ofRanks(), fabric.size()));
        }
        int each = epilogue.joins() ? 2 : 1;
        int rank = fabric.rank();
        Agreement agreement =
                new Agreement(fabric)
                        .on("the experts of a row", experts.perRow())
                        .on("the most rows of an expert", experts.mostOfEach())
                        .on("the most rows of a rank", experts.mostRows())
                        .on("what is done with others", experts.overflow().ordinal());
        for (int r = 0; r < experts.ofRanks().ranks(); r++) {
            agreement.on("the experts of rank " + fabric.worldRank(r), experts.count(r));
        }
        agreement.settle();
        if (sides.size() != each * experts.count(rank)) {
            throw new IllegalArgumentException(
                    "%d Bs for the %d experts of rank %d: expected %d for each"
                            .formatted(
                                    sides.size(),
                                    experts.count(rank),
                                    fabric.worldRank(rank),
                                    each));
        }
        Side own = sides.isEmpty() ? new Side("no B", aType, 0, 0) : sides.getFirst();
        for (int i = 0; i < sides.size(); i++) {
            Side side = sides.get(i);
            if (side.k() != own.k() || side.n() != own.n() || side.k() < 1 || side.n() < 1) {
                throw new IllegalArgumentException(
                        "B number %d is %s: expected the shape of B number 0, %s"
                                .formatted(i, side.text(), own.text()));
            }
        }
        long[][] shapes = fabric.exchange(new long[] {own.k(), own.n()});
        long k = Arrays.stream(shapes[0]).max().orElseThrow();
        long n = Arrays.stream(shapes[1]).max().orElseThrow();
        for (int r = 0; r < fabric.size(); r++) {
            if (experts.count(r) > 0 && (shapes[0][r] != k || shapes[1][r] != n)) {
                throw new IllegalArgumentException(
                        "the Bs of rank %d are [%d, %d], others [%d, %d]: expected one shape for all experts"
                                .formatted(fabric.worldRank(r), shapes[0][r], shapes[1][r], k, n));
            }
        }
        RowGroups rows =
                new RowGroups(experts.count(rank), experts.capacity(rank, most.totalRows()));
        BitSet[] wanted = new BitSet[fabric.size()];
        Arrays.setAll(wanted, r -> new BitSet(Math.toIntExact(most.totalRows())));
        Dispatch.spread(experts, rank, most, rows, wanted);
        Side side = new Side(own.text(), own.dtype(), k, n);
        ofExperts = new OfExperts(experts, each, side, rows, wanted, added);
    }

    final void aType(DType dtype) {
        this.aType = dtype;
    }

    final DType aType() {
        return aType;
    }

    /** The type of a B whose type is not A's, if there is one: an engine must support both. */
    final DType otherType() {
        return sides.stream()
                .map(Side::dtype)
                .filter(type -> type != aType)
                .findFirst()
                .orElse(aType);
    }

    /** The type that an engine of the CPU multiplies: elements with scales are widened before. */
    static DType multiplied(DType type) {
        return type.isScaled() ? DType.FP32 : type;
    }

    /** Null if it is left to Weft. */
    final String engine() {
        return engine;
    }

    /** 0 if it is left to Weft; so are those that follow. */
    final long chunkRows() {
        return chunkRows;
    }

    final int splitsPerRank() {
        return splitsPerRank;
    }

    final int computeWorkers() {
        return computeWorkers;
    }

    /** The type of every product. */
    protected final DType outType() {
        return outType == null ? DType.FP32 : outType;
    }

    /** The columns of the result for {@code n} columns of B: bytes, if its rows have scales. */
    final long resultCols(long n) {
        return outScaling == null ? n : ScaledMatrix.rowBytes(n, outScaling);
    }
}
