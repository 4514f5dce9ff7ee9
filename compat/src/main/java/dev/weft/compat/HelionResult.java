package dev.weft.compat;

import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import java.util.Optional;

/**
 * Gathered A and its product with B, complete or still queued on a GPU. On a GPU, later work on the
 * same stream sees both; close the result when there is no more such work. Used by one thread at a
 * time.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
public interface HelionResult<M> extends AutoCloseable {

    /** Gathered A, [M, K]; on a GPU valid until the close, unless the caller supplied it. */
    M aOut();

    /** Gathered A times B, [M, N]; on a GPU valid until the close. */
    M c();

    /**
     * What each thread of {@link Helion#allGatherMatmul} did on this rank: the copy engine and
     * those that multiply. Calls on GPUs do not report it.
     */
    Optional<Timeline> timeline();

    /**
     * Blocks until both are complete on this rank and, after {@link HelionCuda#allGatherMatmul},
     * all ranks' shards may be written again. In host memory both already are. A caller that only
     * queues more work on the stream need not wait.
     *
     * @throws dev.weft.fabric.FabricException.StallException if a chunk did not arrive within the
     *     group's deadline
     */
    void await();

    /**
     * Frees what the caller did not supply. On a GPU, running work continues, and later calls reuse
     * the memory in stream order.
     */
    @Override
    void close();

    /** A result in host memory: complete, and valid as long as something refers to it. */
    record OnHost(Matrix aOut, Matrix c, Optional<Timeline> timeline)
            implements HelionResult<Matrix> {

        @Override
        public void await() {}

        @Override
        public void close() {}
    }
}
