package dev.weft.fabric.transport;

/**
 * A fabric's own all-gather, such as MPI's, for one operator. All ranks close theirs in the same
 * order.
 */
@FunctionalInterface
public interface RowGather extends AutoCloseable {

    @Override
    default void close() {}

    /**
     * Collective: gathers the rows of all ranks, in rank order, in every rank's part. A rank calls
     * it once it knows that all the others are about to. Until it returns, no other gather of this
     * kind may start, on any rank.
     *
     * @param fromAt the offset of this rank's rows in its part of the region
     * @param toAt the offset of the gathered rows in its part
     * @param rows by rank; rows have no gaps
     */
    void gather(Region region, long fromAt, long toAt, long rowBytes, long[] rows);
}
