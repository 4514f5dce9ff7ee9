package dev.weft.sim;

import dev.weft.tensor.DType;

/** What multiplies rows on one rank. */
public sealed interface Engine permits TileEngine, CoreEngine {

    /** Chunks are cut in multiples of this many rows. */
    long rowQuantum();

    /** Rows that are multiplied in one go at most. */
    long blockRows();

    /** Whether rates are known for A of this type. */
    boolean knows(DType aType);

    /** The same engine, {@code factor} times as fast. */
    Engine faster(double factor);
}
