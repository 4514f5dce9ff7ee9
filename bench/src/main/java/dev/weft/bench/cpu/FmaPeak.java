package dev.weft.bench.cpu;

import dev.weft.gemm.code.Arguments;
import dev.weft.gemm.code.TileCode;
import dev.weft.gemm.code.Tiles;
import dev.weft.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * The most fp32 operations that some threads can do at once: two tiles in the nearest cache, over
 * and over, 0.994 of what Neoverse-N1 can do by its clock.
 */
final class FmaPeak extends MachineRate {

    private static final int CALLS = 1000;
    private static final int TILES = 2;
    private static final int MOST_DEPTH = 256;

    /** Of operands: with the sums they fit the smallest of nearest caches, 32 KiB. */
    private static final int OPERAND_BYTES = 28 << 10;

    /** Written once. */
    private static final class Code {
        static final Tiles TILES = TileCode.forThisMachine();
    }

    private final Tiles tiles = Code.TILES;
    private final int depth =
            Math.min(
                    MOST_DEPTH,
                    OPERAND_BYTES / ((TILES * tiles.rows() + tiles.cols()) * Float.BYTES));

    FmaPeak(int threads) {
        super(threads);
    }

    /** Operations. */
    @Override
    double amount() {
        return 2.0 * TILES * tiles.rows() * tiles.cols() * depth * CALLS * threads();
    }

    @Override
    void work(int thread, Begin begin) throws Exception {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment a = floats(arena, TILES * tiles.rows() * depth);
            MemorySegment b = floats(arena, tiles.cols() * depth);
            MemorySegment sums = floats(arena, TILES * tiles.rows() * tiles.cols());
            Arguments arguments = new Arguments(arena.allocate(Arguments.BYTES, 8));
            long pitch = (long) tiles.cols() * Float.BYTES;
            begin.together();
            for (int call = 0; call < CALLS; call++) {
                tiles.sum(
                        false,
                        a,
                        0,
                        TILES,
                        tiles.rows(),
                        depth,
                        DType.FP32,
                        b,
                        0,
                        tiles.cols(),
                        sums,
                        0,
                        pitch,
                        arguments);
            }
        }
    }

    private static MemorySegment floats(Arena arena, int count) {
        return arena.allocate((long) count * Float.BYTES, 64);
    }
}
