package dev.weft.op.exec;

import dev.weft.op.Operator.View;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/** The state of a call that a rank's workers share; the caller sets it before the team starts. */
public final class CallState {

    /** The number of the call, from 1; wraps after 2^32 calls, which comparisons allow for. */
    public int call;

    public View view;

    /** When the caller began, by {@link System#nanoTime()}. */
    public long startNs;

    /**
     * By program: the number of the next piece to take; workers increment it. Pieces are numbered
     * block after block in the program's order, and within a block by its parts of the columns.
     */
    public final AtomicInteger[] nextPiece;

    /** When every chunk had arrived, as seen by the first compute worker; 0 if it did not look. */
    public long gatheredNs;

    public CallState(int programs) {
        nextPiece = new AtomicInteger[programs];
        Arrays.setAll(nextPiece, program -> new AtomicInteger());
    }
}
