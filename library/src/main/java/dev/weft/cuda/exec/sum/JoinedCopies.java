package dev.weft.cuda.exec.sum;

import dev.weft.cuda.GpuStream;
import dev.weft.ffi.CudaMemory;

/**
 * Copies of rectangles that may run in any order: those that lie side by side or one below the
 * other, on both sides, are one. One thread at a time.
 */
final class JoinedCopies {

    private static final int MOST = 16;

    private final Rectangle[] kept = new Rectangle[MOST];
    private int count;

    JoinedCopies() {
        for (int i = 0; i < MOST; i++) {
            kept[i] = new Rectangle();
        }
    }

    /** One copy; reused, since a call allocates nothing. */
    private static final class Rectangle {
        private long to;
        private long toPitch;
        private long from;
        private long fromPitch;
        private long width;
        private long rows;

        private boolean hasPitchesOf(Rectangle other) {
            return toPitch == other.toPitch && fromPitch == other.fromPitch;
        }

        /** Whether the next one is part of this now. */
        private boolean joins(Rectangle next) {
            if (!hasPitchesOf(next)) {
                return false;
            }
            if (rows == next.rows && next.to == to + width && next.from == from + width) {
                width += next.width;
                return true;
            }
            if (width == next.width
                    && next.to == to + rows * toPitch
                    && next.from == from + rows * fromPitch) {
                rows += next.rows;
                return true;
            }
            return false;
        }
    }

    /**
     * Keeps a copy until {@link #flush}, or until there are many.
     *
     * @param width bytes of each row
     */
    void add(
            long to, long toPitch, long from, long fromPitch, long width, long rows, GpuStream on) {
        if (count == MOST) {
            flush(on);
        }
        Rectangle last = kept[count++];
        last.to = to;
        last.toPitch = toPitch;
        last.from = from;
        last.fromPitch = fromPitch;
        last.width = width;
        last.rows = rows;
        // What has become whole rows may continue the rows before.
        while (count > 1 && kept[count - 2].joins(kept[count - 1])) {
            count--;
        }
    }

    /** Queues what is kept. */
    void flush(GpuStream on) {
        for (int i = 0; i < count; i++) {
            Rectangle r = kept[i];
            CudaMemory.copy2dAsync(
                    r.to, r.toPitch, r.from, r.fromPitch, r.width, r.rows, on.handle());
        }
        count = 0;
    }
}
