package dev.weft.tune;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/** Times copies of chunks between places that are in no near cache, as lanes make them. */
final class CopyProbe {

    private static final long ROWS = 64;
    private static final long COLS = 1024;
    private static final long SLOTS = 64;
    private static final int PIECES = 60;

    private CopyProbe() {}

    /** 10^9 bytes a second that each of so many threads copies, all at once. */
    static double gbps(int threads) {
        try (Arena arena = Arena.ofShared()) {
            double ns = Crowd.medianNs(threads, PIECES, thread -> copies(arena));
            return ROWS * COLS * Float.BYTES / ns;
        }
    }

    private static Runnable copies(Arena arena) {
        Matrix from = Matrix.allocate(arena, DType.FP32, ROWS * SLOTS, COLS);
        Matrix to = Matrix.allocate(arena, DType.FP32, ROWS * SLOTS, COLS);
        from.data().fill((byte) 1);
        to.data().fill((byte) 2);
        long[] slot = {0};
        return () -> {
            long row = slot[0]++ % SLOTS * ROWS;
            to.copyBlock(from, row, 0, row, 0, ROWS, COLS);
        };
    }
}
