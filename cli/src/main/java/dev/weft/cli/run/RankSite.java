package dev.weft.cli.run;

import dev.weft.fabric.Fabric;
import dev.weft.op.Operator;
import dev.weft.tensor.Matrix;
import java.io.IOException;

/**
 * The place where a rank's matrices live, and what depends on it: how an operator is described, how
 * shards get into its memory, and how its product is judged. Used by the rank's thread.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
interface RankSite<M> extends AutoCloseable {

    /** {@code cpu}, or {@code cuda:} and the GPU's name. */
    String device();

    /** What was asked for. Collective. */
    Operator<M> prepare();

    /** The same without overlap. Collective. */
    Operator<M> prepareSequential();

    /** Both halves of the operator's memory get the shard, by a call each. Collective. */
    void place(Operator<M> operator);

    /**
     * Makes calls whose outputs are poisoned first, so that every element must be written anew, and
     * judges them. Collective.
     */
    Judged judge(Operator<M> fused, Operator<M> sequential) throws IOException;

    @Override
    void close();

    /**
     * What {@link RankReport} tells of the judged calls, and what is to be written.
     *
     * @param gathered null where it is not asked for
     */
    record Judged(
            boolean gatheredExact,
            boolean equal,
            boolean withinBound,
            Matrix product,
            Matrix gathered) {

        /** While it is still being measured. */
        static final Judged NOT_YET = new Judged(false, false, false, null, null);
    }

    /** Meets the other ranks, of which there may be none. */
    static void together(Fabric world) {
        if (world != null) {
            world.barrier();
        }
    }
}
