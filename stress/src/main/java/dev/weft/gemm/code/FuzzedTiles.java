package dev.weft.gemm.code;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;

import dev.weft.ffi.GuardedArea;
import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Machine code, called as an input says, with operands flush with pages that nobody may touch: sums
 * are those of the chain of multiply-adds, bit for bit, packed and in place, or the call is
 * refused. With AMX elements are whole numbers, whose sums are exact in any order. For one thread.
 */
public final class FuzzedTiles {

    private static final int MOST_TILES = 3;
    private static final int MOST_DEPTH = 100;
    private static final int AREA_BYTES = 1 << 20;

    private final List<Tiles> kinds = new ArrayList<>();
    private final GuardedArea areaOfA = new GuardedArea(AREA_BYTES);
    private final GuardedArea areaOfPacked = new GuardedArea(AREA_BYTES);
    private final GuardedArea areaOfPanel = new GuardedArea(AREA_BYTES);
    private final GuardedArea areaOfSums = new GuardedArea(AREA_BYTES);
    private final GuardedArea areaOfWidened = new GuardedArea(AREA_BYTES);
    private final GuardedArea areaInPlace = new GuardedArea(AREA_BYTES);
    private final Arguments arguments =
            new Arguments(new GuardedArea(1 << 16).take(Arguments.BYTES, true));

    /**
     * @throws IllegalStateException where there is no machine code
     */
    public FuzzedTiles() {
        kinds.add(TileCode.forThisMachine());
        try {
            kinds.add(TileCode.amx());
        } catch (IllegalStateException e) {
            // Most processors have none.
        }
    }

    /** A wrong size of a call, or none. */
    private enum Spoiled {
        NOTHING,
        DEPTH,
        NO_DEPTH,
        HUGE_DEPTH,
        ROWS,
        COLS,
        TILES,
        HUGE_TILES,
        PITCH,
        NEGATIVE_PITCH,
        A,
        PANEL,
        SUMS,
        READ_ONLY,
        HEAP
    }

    /** The call that an input stands for; what it lacks is 0. */
    public void call(byte[] input) {
        ByteBuffer numbers = ByteBuffer.wrap(Arrays.copyOf(input, 18));
        Tiles tiles = kinds.get(upTo(numbers, kinds.size()));
        final DType any = DType.UNSCALED.get(upTo(numbers, DType.UNSCALED.size()));
        final int tileCount = 1 + upTo(numbers, MOST_TILES);
        final int lastRows = 1 + upTo(numbers, tiles.rows());
        final int some = 1 + upTo(numbers, tiles.cols());
        final int depth = upTo(numbers, MOST_DEPTH);
        final boolean resume = upTo(numbers, 2) == 1;
        final boolean atEnd = upTo(numbers, 2) == 1;
        final int aGap = upTo(numbers, 9);
        final int sumGap = upTo(numbers, 40);
        final int offset = upTo(numbers, 8);
        final int spoiled = upTo(numbers, 4 * Spoiled.values().length);
        SplittableRandom random = new SplittableRandom(numbers.getInt());
        final int panels = 1 + upTo(numbers, 3);
        final int cols = panels == 1 ? some : panels * tiles.cols();
        final DType anyPanel = DType.UNSCALED.get(upTo(numbers, DType.UNSCALED.size()));
        boolean amx = tiles.type() == DType.BF16;
        DType type = amx ? DType.BF16 : any;
        DType panelType = amx ? DType.BF16 : anyPanel;
        Case one = new Case(tiles, type, panelType, tileCount, lastRows, cols, depth, resume);
        one.place(atEnd, aGap, sumGap, offset, random);
        boolean right = spoiled >= Spoiled.values().length || spoiled == 0;
        one.run(right ? Spoiled.NOTHING : Spoiled.values()[spoiled]);
        if (right) {
            one.check(tileCount == 1 ? one.rows : tileCount * tiles.rows());
            if (tiles.mostRowsInPlace() > 0
                    && cols <= tiles.cols()
                    && depth >= Tiles.LEAST_DEPTH_IN_PLACE) {
                one.sumInPlace(atEnd);
                one.check(one.rows);
            }
        }
    }

    private static int upTo(ByteBuffer numbers, int bound) {
        return (numbers.get() & 0xFF) % bound;
    }

    /** Operands of one call. */
    private final class Case {
        private final Tiles tiles;
        private final DType type;
        private final DType panelType;
        private final int tileCount;
        private final int rows;
        private final int cols;
        private final int width;
        private final int depth;
        private final boolean resume;

        private MemorySegment a;
        private MemorySegment packed;
        private MemorySegment panel;
        private MemorySegment sums;
        private long aPitch;
        private long sumPitch;
        private long from;
        private final float[][] left;
        private final float[][] right;
        private final float[][] before;

        /**
         * @param lastRows rows of A in the last tile, and rows that are wanted of a single one
         */
        Case(
                Tiles tiles,
                DType type,
                DType panelType,
                int tileCount,
                int lastRows,
                int cols,
                int depth,
                boolean resume) {
            this.tiles = tiles;
            this.type = type;
            this.panelType = panelType;
            this.tileCount = tileCount;
            this.rows = (tileCount - 1) * tiles.rows() + lastRows;
            this.cols = cols;
            this.depth = depth;
            this.resume = resume;
            this.left = new float[rows][depth];
            this.width = Math.max(cols, tiles.cols());
            this.right = new float[depth][width];
            this.before = new float[tileCount * tiles.rows()][width];
        }

        void place(boolean atEnd, int aGap, int sumGap, int offset, SplittableRandom random) {
            from = (long) offset * Float.BYTES;
            aPitch = (long) (depth + aGap) * type.bytes();
            sumPitch = (long) (width + sumGap) * Float.BYTES;
            a = areaOfA.take(from + (rows - 1) * aPitch + (long) depth * type.bytes(), atEnd);
            packed = areaOfPacked.take(from + tileCount * tiles.tileBytes(depth), atEnd);
            int tileCols = tiles.cols();
            panel =
                    areaOfPanel.take(
                            from + width / tileCols * tiles.panelBytes(panelType, depth), atEnd);
            int written = tileCount == 1 ? tiles.rows() : before.length;
            long rowBytes = (long) width * Float.BYTES;
            sums = areaOfSums.take(from + (written - 1) * sumPitch + rowBytes, atEnd);
            panel.fill((byte) 0);
            for (int k = 0; k < depth; k++) {
                for (int row = 0; row < rows; row++) {
                    left[row][k] = type.round(number(random));
                    long at = from + row * aPitch + (long) k * type.bytes();
                    type.write(a, at, left[row][k]);
                }
                for (int col = 0; col < width; col++) {
                    right[k][col] = panelType.round(number(random));
                    long at =
                            from
                                    + col / tileCols * tiles.panelBytes(panelType, depth)
                                    + Tiles.inPanel(
                                            panelType, tiles.pairs(), tileCols, k, col % tileCols);
                    panelType.write(panel, at, right[k][col]);
                }
            }
            for (int row = 0; row < before.length; row++) {
                for (int col = 0; col < width; col++) {
                    before[row][col] = number(random);
                    sums.set(JAVA_FLOAT_UNALIGNED, sumAt(row, col), before[row][col]);
                }
            }
        }

        private float number(SplittableRandom random) {
            return tiles.type() == DType.BF16
                    ? random.nextInt(-100, 101)
                    : (random.nextFloat() - 0.5f) * (1 << random.nextInt(12));
        }

        private long sumAt(int row, int col) {
            return from + row * sumPitch + (long) col * Float.BYTES;
        }

        void run(Spoiled spoiled) {
            for (int tile = 0; tile < tileCount; tile++) {
                int first = tile * tiles.rows();
                int count = Math.min(tiles.rows(), rows - first);
                long to = from + tile * tiles.tileBytes(depth);
                tiles.pack(
                        type,
                        a,
                        from + first * aPitch,
                        aPitch,
                        count,
                        depth,
                        packed,
                        to,
                        arguments);
            }
            int rowCount = tileCount == 1 ? rows : tiles.rows();
            MemorySegment target = spoiled == Spoiled.READ_ONLY ? sums.asReadOnly() : sums;
            tiles.sum(
                    resume,
                    spoiled == Spoiled.HEAP ? MemorySegment.ofArray(new byte[64]) : packed,
                    spoiled == Spoiled.A ? -4 : from,
                    spoiled == Spoiled.TILES
                            ? tileCount + 1
                            : spoiled == Spoiled.HUGE_TILES ? Integer.MAX_VALUE : tileCount,
                    spoiled == Spoiled.ROWS ? tiles.rows() + 1 : rowCount,
                    switch (spoiled) {
                        case DEPTH -> depth + 40;
                        case NO_DEPTH -> -1;
                        case HUGE_DEPTH -> Integer.MAX_VALUE;
                        default -> depth;
                    },
                    panelType,
                    panel,
                    spoiled == Spoiled.PANEL ? Long.MAX_VALUE : from,
                    spoiled == Spoiled.COLS ? 0 : cols,
                    target,
                    spoiled == Spoiled.SUMS ? sums.byteSize() : from,
                    switch (spoiled) {
                        case PITCH -> Long.MAX_VALUE;
                        case NEGATIVE_PITCH -> -sumPitch;
                        default -> sumPitch;
                    },
                    arguments);
            if (spoiled != Spoiled.NOTHING) {
                throw new AssertionError(spoiled + " was not noticed");
            }
        }

        /** The same sums from rows where they are, in other memory. */
        void sumInPlace(boolean atEnd) {
            MemorySegment wide = panel;
            long wideFrom = from;
            if (panelType != DType.FP32) {
                wide = areaOfWidened.take(tiles.panelBytes(DType.FP32, depth), atEnd);
                wideFrom = 0;
                tiles.widen(panelType, panel, from, depth, wide, arguments);
            }
            int quantum = tiles.rowsInPlace(cols);
            int written = Math.ceilDiv(rows, quantum) * quantum;
            long rowBytes = (long) width * Float.BYTES;
            sums = areaInPlace.take(from + (written - 1) * sumPitch + rowBytes, atEnd);
            for (int row = 0; row < rows; row++) {
                for (int col = 0; col < width; col++) {
                    sums.set(JAVA_FLOAT_UNALIGNED, sumAt(row, col), before[row][col]);
                }
            }
            tiles.sumInPlace(
                    resume, type, a, from, aPitch, rows, depth, wide, wideFrom, cols, sums, from,
                    sumPitch, arguments);
        }

        /** Columns past a step, and rows past one of a single tile, are as before or summed. */
        void check(int wanted) {
            for (int row = 0; row < wanted; row++) {
                float[] ofA = left[Math.min(row, rows - 1)];
                for (int col = 0; col < cols; col++) {
                    float sum = resume ? before[row][col] : 0f;
                    for (int k = 0; k < depth; k++) {
                        sum = Math.fma(ofA[k], right[k][col], sum);
                    }
                    float found = sums.get(JAVA_FLOAT_UNALIGNED, sumAt(row, col));
                    if (Float.floatToIntBits(found) != Float.floatToIntBits(sum)) {
                        throw new AssertionError(
                                "%s gave %s, not %s, at row %s, column %s of %s tiles, depth %s"
                                        .formatted(
                                                tiles.name(),
                                                found,
                                                sum,
                                                row,
                                                col,
                                                tileCount,
                                                depth));
                    }
                }
            }
        }
    }
}
