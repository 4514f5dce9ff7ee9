package dev.weft.op;

import dev.weft.op.exec.Description;
import dev.weft.op.exec.Description.Feature;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Plan;
import dev.weft.plan.PlanChecker;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.tensor.DType;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * Describes an operator, for CPUs or GPUs, and prepares it. All ranks describe the same operator,
 * except for B: if B is sharded by columns, each rank gives its own columns. Used by one thread.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 * @param <B> the type of the builder itself
 */
public abstract class OperatorBuilder<M, B extends OperatorBuilder<M, B>>
        extends MatmulBuilder<M, B> {

    private final int ranks;
    private Shards shards;
    private Scaling scaling;
    private GatherWriter algorithm = Algorithm.AUTO;
    private Chunks chunks;
    private int likeLanes;
    private long chunkCols;
    private int commWorkers;
    private final Set<Feature> features = EnumSet.noneOf(Feature.class);
    private long gatherOnlyCols;

    /**
     * @param ranks the number of ranks of the group; 0 if the shards give it
     */
    protected OperatorBuilder(int ranks) {
        this.ranks = ranks;
    }

    /** The most rows of a call; null if they were not given. */
    final Shards shards() {
        return shards;
    }

    /** The number of ranks of the group; 0 if the shards give it. */
    final int ranks() {
        return ranks;
    }

    /** How the rows of A are spread over the ranks, and the type of A's elements. */
    public B a(Shards shards, DType dtype) {
        if (ranks > 0 && shards.ranks() != ranks) {
            throw new IllegalArgumentException(
                    "shards for " + shards.ranks() + " ranks in a group of " + ranks);
        }
        this.shards = shards;
        this.scaling = null;
        aType(dtype);
        return self();
    }

    /**
     * Like {@link #a(Shards, DType)}, for an A of 8 bits. A shard is then a matrix of rows with
     * their scales in front, as {@link ScaledMatrix#rowsOf} makes them and {@link
     * ScaledMatrix#inRows} reads them.
     *
     * @param dtype e4m3
     * @param given which elements share a scale; tensor and row use the same layout of rows
     */
    public final B scaledA(Shards shards, DType dtype, Scaling given) {
        if (dtype != DType.E4M3) {
            throw new IllegalArgumentException(
                    "A of %s with scales: expected e4m3".formatted(dtype.label()));
        }
        a(shards, dtype);
        this.scaling = Objects.requireNonNull(given, "scaling");
        return self();
    }

    /**
     * How rows are gathered. {@link Algorithm#AUTO}, the default, prices the algorithms on a model
     * of this machine and times the cheapest against sequential. This adds about a second to {@link
     * #prepare}, once for each problem in a process. If the command {@code weft} has not stored a
     * model of this CPU, the process measures one first, for at most three seconds for each engine
     * and type of A, and keeps it as long as it runs; no file is written. Plans of writers other
     * than {@link Algorithm} are proved when the operator is prepared.
     */
    public final B algorithm(GatherWriter writer) {
        this.algorithm = PlanChecker.guarded(writer);
        this.chunks = null;
        this.likeLanes = 0;
        return self();
    }

    /**
     * The algorithm, chunks and communication workers of another operator's plan ({@link
     * Operator#plan}), which saves a second search.
     */
    public final B like(Plan plan) {
        if (!(plan.algorithm() instanceof GatherWriter writer)) {
            throw new IllegalArgumentException(
                    "the plan of %s sums: expected one that gathers".formatted(plan.name()));
        }
        algorithm(writer);
        this.chunks = plan.chunks();
        this.likeLanes = plan.lanes();
        return self();
    }

    /** Cuts chunks to this many columns; by default chunks are whole rows. */
    public final B chunkCols(long cols) {
        this.chunkCols = positive("chunk columns", cols);
        return self();
    }

    /**
     * How many threads of this rank move chunks, or how many streams copy them; by default as few
     * as the algorithm needs.
     */
    public final B commWorkers(int workers) {
        this.commWorkers = (int) positive("communication workers", workers);
        return self();
    }

    /** Keeps gathered A for {@link Result#gathered}. */
    public final B keepGathered() {
        features.add(Feature.KEPT);
        return self();
    }

    /**
     * A ring that keeps arriving shards in only two buffers of one shard each, used in turn:
     * gathered A is never stored. Sets the algorithm; the ring has {@link #commWorkers} lanes, by
     * default one.
     */
    public final B pingPong() {
        features.add(Feature.PING_PONG);
        return algorithm(Algorithm.pingPongRing());
    }

    /**
     * Like {@link #pingPong()}, with this many lanes, which move parts of a shard at the same time.
     */
    public final B pingPong(int lanes) {
        return pingPong().commWorkers(lanes);
    }

    /**
     * No product: only gathers an A of {@code cols} columns, shards below each other or side by
     * side.
     */
    final B gatherOnly(long cols, boolean besideEachOther) {
        this.gatherOnlyCols = positive("columns", cols);
        if (besideEachOther) {
            features.add(Feature.SIDE_BY_SIDE);
        }
        return keepGathered();
    }

    /**
     * Lets row blocks wait for a counter of their lane before they look at their chunks' flags.
     * They block on one word instead of several; each chunk costs one more signal.
     */
    public final B waitForSummary() {
        features.add(Feature.SUMMARIES);
        return self();
    }

    /**
     * Lets the ranks of a host read each other's products and gathered A: see {@link
     * Operator#peerProduct} and {@link Operator#peerGathered}. On the CPU, products then use twice
     * the memory; on a GPU, a call starts only when every rank of the group has started it.
     */
    public final B sharedResults() {
        features.add(Feature.SHARED);
        return self();
    }

    /** Checks that operands of 8 bits have scales, with the same layout in A and B. */
    private void requireScales(List<Side> sides) {
        boolean scaled = scaling != null;
        if (!sides.isEmpty() && aType().isScaled() != scaled) {
            throw new IllegalArgumentException(
                    "A of %s without scales: expected scaledA(...)".formatted(aType().label()));
        }
        for (Side side : sides) {
            if (side.dtype().isScaled() != scaled) {
                throw new IllegalArgumentException(
                        "A of %s with B %s: expected scales for both or for neither"
                                .formatted(aType().label(), side.text()));
            }
        }
    }

    /** The whole description, checked as far as it is the same on every rank. */
    @SuppressWarnings("exports")
    protected final Description description() {
        List<Side> sides = sides();
        boolean none = sides.isEmpty() && gatherOnlyCols == 0 && ofExperts() == null;
        if (shards == null || none) {
            throw new IllegalArgumentException("an operator needs a(...) and at least one b(...)");
        }
        long k =
                ofExperts() != null
                        ? ofExperts().side().k()
                        : sides.isEmpty() ? gatherOnlyCols : sides.getFirst().k();
        for (int i = 0; i < sides.size(); i++) {
            if (sides.get(i).k() != k || k < 1) {
                throw new IllegalArgumentException(
                        "B number %d is %s: expected K = %d as of B number 0"
                                .formatted(i, sides.get(i).text(), Math.max(k, 1)));
            }
        }
        requireScales(sides);
        boolean kept = features.contains(Feature.KEPT);
        if (features.contains(Feature.PING_PONG) && (kept || algorithm instanceof Algorithm)) {
            throw new IllegalArgumentException(
                    "ping-pong buffers with %s: expected a ring that keeps none"
                            .formatted(kept ? "gathered A kept" : algorithm.label()));
        }
        Description description =
                new Description(
                        shards,
                        aType(),
                        scaling,
                        scaling == null ? k : ScaledMatrix.rowBytes(k, scaling),
                        columns().isEmpty() ? aType() : outType(),
                        columns(),
                        algorithm,
                        chunks,
                        engine(),
                        new Cut(chunkRows(), splitsPerRank(), chunkCols),
                        computeWorkers(),
                        likeLanes > 0 ? likeLanes : commWorkers,
                        features,
                        null);
        description.checkGiven();
        return description;
    }
}
