package dev.weft.compat;

import dev.weft.tensor.Matrix;

/**
 * Gathered A and its product with B, complete or still queued on a GPU. On a GPU what is queued
 * behind it on the same stream finds both; the rank closes it when no more such work comes. One
 * thread at a time.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
public interface HelionResult<M> extends AutoCloseable {

    /** Gathered A, [M, K]; on a GPU, where the caller did not supply it, valid until the close. */
    M aOut();

    /** Gathered A times B, [M, N]; on a GPU valid until the close. */
    M c();

    /**
     * Blocks until both are there on this rank and, after {@link HelionCuda#allGatherMatmul}, all
     * ranks' shards may be written again. In host memory both are there. A caller that only queues
     * more work on the stream need not wait.
     *
     * @throws dev.weft.fabric.StallException if a chunk did not come within the group's deadline
     */
    void await();

    /**
     * Gives back what the caller did not supply. On a GPU what is under way goes on, and the memory
     * serves a later call, in stream order.
     */
    @Override
    void close();

    /** In host memory: complete, and valid as long as something refers to it. */
    record OnHost(Matrix aOut, Matrix c) implements HelionResult<Matrix> {

        @Override
        public void await() {}

        @Override
        public void close() {}
    }
}
