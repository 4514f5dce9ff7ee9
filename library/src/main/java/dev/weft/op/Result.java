package dev.weft.op;

import java.util.Optional;

/**
 * The result of a call: a view of the operator's own buffers. Products and gathered A stay valid,
 * and the timeline can be read, until the operator's next call starts.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
public interface Result<M> {

    /** allgather(A) x B, [M, N], for the first or only B. */
    default M product() {
        return product(0);
    }

    /** The product with the B that was given as number {@code index}. */
    M product(int index);

    /**
     * allgather(A), [M, K], if it was kept and the call was a whole one: the measuring views leave
     * own rows out of it.
     */
    Optional<M> gathered();

    /**
     * From the call's start until this rank's transfers and products were done; on a GPU by the
     * device's clock, from the call's turn in its stream on.
     */
    long elapsedNs();

    /**
     * How long the gather took where it came first (a sequential operator, or the transfers alone);
     * otherwise 0.
     */
    long gatherNs();

    /** What every worker of this rank did. Copies the record out, so it may be kept. */
    Timeline timeline();
}
