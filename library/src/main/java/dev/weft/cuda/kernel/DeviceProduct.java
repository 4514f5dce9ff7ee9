package dev.weft.cuda.kernel;

import dev.weft.cuda.GpuStream;
import java.util.Optional;

/** A product whose rows wait for the flags of what they are made of. One thread at a time. */
public interface DeviceProduct extends AutoCloseable {

    /** Thread blocks of its grid, at most; 0 if a library chooses. */
    int blocks();

    /**
     * Makes the next launches, which come behind what is on {@code stream} by now, products of the
     * rows of a call. At most two calls may be under way.
     */
    void setRows(RowPlaces.Call call, GpuStream stream);

    /**
     * Queues it on a stream.
     *
     * @param place which of A's places it reads
     * @param epoch what the flags must have reached
     */
    void launch(int place, int epoch, GpuStream stream);

    /** When the tiles of the latest launch were multiplied; empty without tiles that tell. */
    default Optional<TileTimes> times() {
        return Optional.empty();
    }

    /** Lets its kernel note when chunks arrive, if it can. */
    default void watch(ArrivalTimes arrivals) {}

    @Override
    void close();
}
