package dev.weft.op;

import dev.weft.op.exec.Description;
import dev.weft.op.exec.Description.Feature;
import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
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
 * Takes the description of an operator, for CPUs or GPUs, and prepares it. All ranks describe the
 * same operator, except for B: where B is sharded by columns, each rank gives its own columns. Used
 * by one thread.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 * @param <B> the type of the builder itself
 */
public abstract class OperatorBuilder<M, B extends OperatorBuilder<M, B>>
        extends MatmulBuilder<M, B> {

    private final int ranks;
    private Shards shards;
    private Scaling scaling;
    private PlanWriter algorithm = Algorithm.AUTO;
    private List<RankPlan> plans;
    private long chunkCols;
    private int commWorkers;
    private final Set<Feature> features = EnumSet.noneOf(Feature.class);
    private long gatherOnlyCols;

    /**
     * @param ranks of the group; 0 where the shards say how many there are
     */
    protected OperatorBuilder(int ranks) {
        this.ranks = ranks;
    }

    /** Of the group; 0 where the shards say how many there are. */
    final int ranks() {
        return ranks;
    }

    /** How the rows of A lie on the ranks, and the type of A's elements. */
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
     * As {@link #a(Shards, DType)}, for an A of 8 bits. A shard is then a matrix of rows with their
     * scales in front, as {@link ScaledMatrix#rowsOf} makes them and {@link ScaledMatrix#inRows}
     * sees them.
     *
     * @param dtype e4m3
     * @param given which elements share a scale; rows are the same for tensor and row
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
     * of this machine and tries the cheapest beside sequential, which takes {@link #prepare} a
     * second or so, once for each problem in a process. Where the command {@code weft} has not
     * stored a model of this CPU, this process measures one first, for three seconds at most for
     * each engine and type of A, and keeps it for as long as it lives; no file is written. Plans of
     * any other writer than {@link Algorithm} are proved when the operator is prepared.
     */
    public final B algorithm(PlanWriter writer) {
        this.algorithm = writer;
        this.plans = null;
        return self();
    }

    /**
     * The plans of all ranks, in rank order, in place of an algorithm, a cut and communication
     * workers: the caller's own, which are proved when the operator is prepared, or those of
     * another operator ({@link Operator#plans}), which need no second search.
     */
    public final B plans(List<RankPlan> given) {
        this.plans = given;
        return self();
    }

    /** Chunks of this many columns; by default chunks are whole rows. */
    public final B chunkCols(long cols) {
        this.chunkCols = positive("chunk columns", cols);
        return self();
    }

    /**
     * Threads of this rank that move chunks, or streams that copy them; by default as few as the
     * algorithm needs.
     */
    public final B commWorkers(int workers) {
        this.commWorkers = (int) positive("communication workers", workers);
        return self();
    }

    /** Leaves gathered A in {@link Result#gathered}. */
    public final B keepGathered() {
        features.add(Feature.KEPT);
        return self();
    }

    /**
     * A ring whose arriving shards live only in two buffers of one shard each, used in turn: no
     * gathered A is stored anywhere. Sets the algorithm; the ring has {@link #commWorkers} lanes,
     * one unless said otherwise.
     */
    public final B pingPong() {
        features.add(Feature.PING_PONG);
        return algorithm(Algorithm.pingPongRing());
    }

    /** As {@link #pingPong()}, with so many lanes, which move parts of a shard at the same time. */
    public final B pingPong(int lanes) {
        return pingPong().commWorkers(lanes);
    }

    /** No product: A of {@code cols} columns is gathered, shard below shard or beside it. */
    final B gatherOnly(long cols, boolean besideEachOther) {
        this.gatherOnlyCols = positive("columns", cols);
        if (besideEachOther) {
            features.add(Feature.SIDE_BY_SIDE);
        }
        return keepGathered();
    }

    /**
     * Row blocks wait for a counter of the lane that delivers them, and only then look at their
     * chunks' flags: one word to block on instead of several, and one signal more per chunk.
     */
    public final B waitForSummary() {
        features.add(Feature.SUMMARIES);
        return self();
    }

    /**
     * Lets the ranks of a host read each other's products and gathered A: see {@link
     * Operator#peerProduct} and {@link Operator#peerGathered}. On the CPU products then take twice
     * the memory; on a GPU a call starts when every rank of the group has.
     */
    public final B sharedResults() {
        features.add(Feature.SHARED);
        return self();
    }

    /** Operands of 8 bits have scales, those of A the same layout as those of B. */
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

    /** All of the above, checked as far as it is the same everywhere. */
    @SuppressWarnings("exports")
    protected final Description description() {
        List<Side> sides = sides();
        if (shards == null || sides.isEmpty() && gatherOnlyCols == 0) {
            throw new IllegalArgumentException("an operator needs a(...) and at least one b(...)");
        }
        long k = sides.isEmpty() ? gatherOnlyCols : sides.getFirst().k();
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
                        sides.isEmpty() ? aType() : outType(),
                        sides.stream().map(Side::n).toList(),
                        algorithm,
                        plans,
                        engine(),
                        new Cut(chunkRows(), splitsPerRank(), chunkCols),
                        computeWorkers(),
                        commWorkers,
                        features);
        description.checkGiven();
        return description;
    }
}
