package dev.weft.cli.run;

import dev.weft.fabric.Fabric;
import dev.weft.op.Operator;
import dev.weft.tensor.Matrix;
import java.io.IOException;

/**
 * The place of a rank's matrices, and what depends on it: how an operator is described, how shards
 * get into its memory, and how its product is checked. Used by the rank's thread.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
interface RankSite<M> extends AutoCloseable {

    /** {@code cpu}, or {@code cuda:} and the GPU's name. */
    String device();

    /** The requested operator. Collective. */
    Operator<M> prepare();

    /** The same operator without overlap. Collective. */
    Operator<M> prepareSequential();

    /** Puts the shard into both halves of the operator's memory, by a call for each. Collective. */
    void place(Operator<M> operator);

    /**
     * Makes calls with poisoned outputs, so that every element must be written again, and checks
     * them. Collective.
     */
    Judged judge(Operator<M> fused, Operator<M> sequential) throws IOException;

    @Override
    void close();

    /**
     * The verdict on the checked calls for {@link RankReport}, and what is to be written.
     *
     * @param gathered null if it was not requested
     */
    record Judged(
            boolean gatheredExact,
            boolean equal,
            boolean withinBound,
            Matrix product,
            Matrix gathered) {}

    /** Synchronizes with the other ranks, if there are any. */
    static void barrier(Fabric world) {
        if (world != null) {
            world.barrier();
        }
    }
}
