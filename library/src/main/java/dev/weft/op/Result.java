package dev.weft.op;

import dev.weft.trace.Timeline;
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

    /** The product with B number {@code index}, in the order in which they were given. */
    M product(int index);

    /**
     * allgather(A), [M, K], if it was kept and the call was a whole one: the views for measurements
     * leave out own rows.
     */
    Optional<M> gathered();

    /**
     * The time from the call's start until this rank's transfers and products were done; on a GPU
     * by the device's clock, from when the call's turn in its stream came.
     */
    long elapsedNs();

    /**
     * How long the gather took if it came first (a sequential operator, or only transfers);
     * otherwise 0.
     */
    long gatherNs();

    /** What every worker of this rank did. It is a copy that the caller may keep. */
    Timeline timeline();
}
