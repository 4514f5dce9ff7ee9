package dev.weft.fabric;

/**
 * An all-gather that a fabric brings along, as MPI does, for one operator. Every rank closes it, in
 * the same order as others.
 */
@FunctionalInterface
public interface RowGather extends AutoCloseable {

    @Override
    default void close() {}

    /**
     * Collective: the rows of every rank come to lie below each other, in rank order, in every
     * rank's part. A rank calls it once it knows that all the others are about to; until it returns
     * no other gather of this kind may start, on any rank.
     *
     * @param fromAt where this rank's rows begin in its part of the region
     * @param toAt where all rows begin in its part
     * @param rows by rank; rows lie without gaps
     */
    void gather(Region region, long fromAt, long toAt, long rowBytes, long[] rows);
}
