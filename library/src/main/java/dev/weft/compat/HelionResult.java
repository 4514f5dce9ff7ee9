package dev.weft.compat;

import dev.weft.tensor.Matrix;

/**
 * Gathered A and its product with B, complete or still queued on a GPU. On a GPU the rank awaits
 * it, after a collective call before the next one on the group, and then closes it. One thread at a
 * time.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
public interface HelionResult<M> extends AutoCloseable {

    /** Gathered A, [M, K]; on a GPU, where the caller did not supply it, valid until the close. */
    M aOut();

    /** Gathered A times B, [M, N]; on a GPU valid until the close. */
    M c();

    /**
     * Blocks until both are there on this rank. After {@link HelionCuda#allGatherMatmul} it is
     * collective, and all ranks' shards may be written again. In host memory both are there.
     *
     * @throws dev.weft.fabric.StallException if a chunk did not come within the group's deadline
     */
    void await();

    /** Waits for what is under way and frees what the caller did not supply. */
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
