package dev.weft.plan;

import dev.weft.plan.step.StepPlan;
import java.util.List;
import java.util.Locale;

/** Weft's own ways to gather; each writes its own plans. */
public enum Algorithm implements GatherWriter {
    /** Weft chooses among the others. */
    AUTO,
    /** Each rank passes chunks to its successor, in one direction. */
    RING,
    /** A ring in both directions at once, with half the hops. */
    BIDIRECTIONAL_RING,
    /** The owner writes its chunks to every peer. */
    MESH_PUSH,
    /** The reader copies chunks from every peer, starting with its successor. */
    MESH_PULL,
    /** Peers share memory: rows are multiplied straight out of the peer's shard. */
    DIRECT,
    /** Gather everything, then multiply: no overlap. */
    SEQUENTIAL;

    @Override
    public List<StepPlan> plans(GatherRequest request) {
        return Planner.plans(this, request);
    }

    @Override
    public boolean isSymmetric() {
        return true;
    }

    @Override
    public String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** The lanes of each rank's plan if {@code requested} are wanted: none if nothing travels. */
    public int lanes(Hosts hosts, int requested) {
        return Planner.lanes(this, hosts, requested);
    }

    /**
     * A ring in one direction that keeps no gathered A: shards arrive in two alternating buffers.
     * Every lane carries its part of each shard.
     */
    public static GatherWriter pingPongRing() {
        return new PingPongRing();
    }

    /**
     * A ring through two buffers, like {@link #pingPongRing}, that cuts the rows of a shard into
     * {@code programs x lanes} slices of nearly equal size. Each slice belongs to one program,
     * which multiplies it, and to one lane, which moves it; all lanes move at the same time. The
     * given chunks are used only as a hint of their size: chunks and blocks end where slices do.
     *
     * @param byLane whether slices are numbered lane after lane, {@code lane * programs + program},
     *     instead of program after program, {@code program * lanes + lane}
     */
    public static GatherWriter slicedRing(int programs, int lanes, boolean byLane) {
        return new SlicedRing(programs, lanes, byLane);
    }

    /**
     * Splits another way to gather between the programs of a rank: program p of P moves and
     * consumes the p-th of P equal parts of every shard's rows, with its own lanes. Each program
     * gets the same number of whole chunks of a shard.
     *
     * @param base not {@link #AUTO}, which writes no plans
     */
    public static GatherWriter byPrograms(GatherWriter base, int programs) {
        return new ByPrograms(PlanChecker.guarded(base), programs);
    }

    /** The algorithm named {@code label}; the inverse of {@link #label()}. */
    public static Algorithm of(String label) {
        return Planner.named(label, List.of(values()));
    }

    /** Splits another way to gather between programs. */
    record ByPrograms(GatherWriter base, int programs) implements GatherWriter {

        ByPrograms {
            if (programs < 1) {
                throw new IllegalArgumentException(
                        programs + " programs: expected at least one of them");
            }
        }

        @Override
        public String label() {
            return base.label();
        }

        @Override
        public boolean isSymmetric() {
            return base.isSymmetric();
        }

        /** A block is a chunk, so that it belongs to one program. */
        @Override
        public Chunks cut(Chunks given) {
            Shards shards = given.shards();
            for (int r = 0; r < shards.ranks(); r++) {
                if (shards.rows(r) % (programs * given.chunkRows(r)) != 0) {
                    throw new IllegalArgumentException(
                            "%s rows of rank %s in chunks of %s for %s programs: expected as many whole chunks for each"
                                    .formatted(shards.rows(r), r, given.chunkRows(r), programs));
                }
            }
            Chunks cut =
                    Chunks.ofFullRows(shards, given.cols(), given.chunkRows(0), given::chunkRows);
            return given.chunkCols() < given.cols() ? cut.withChunkCols(given.chunkCols()) : cut;
        }

        @Override
        public List<StepPlan> plans(GatherRequest request) {
            return base.plans(request.with(cut(request.chunks()), programs));
        }
    }
}
