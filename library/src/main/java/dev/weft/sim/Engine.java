package dev.weft.sim;

import dev.weft.tensor.DType;

/** The engine that multiplies rows on one rank. */
public sealed interface Engine permits TileEngine, CoreEngine {

    /** Chunks are cut in multiples of this many rows. */
    long rowQuantum();

    /** The most rows that are multiplied at a time. */
    long blockRows();

    /** Whether rates are known for A of this type. */
    boolean knows(DType aType);

    /** The same engine, {@code factor} times as fast. */
    Engine faster(double factor);
}
