package dev.weft.gemm.code;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;

import dev.weft.ffi.GuardedArea;
import dev.weft.tensor.BlockType;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * Machine code for a B in blocks, called as an input says, with operands flush with pages that
 * nobody may touch: sums are those of {@link ScalarBlocks}, bit for bit, or the call is refused.
 * For one thread.
 */
public final class FuzzedBlocks {

    private static final int AREA_BYTES = 1 << 20;
    private static final int MOST_PANELS = 3;
    private static final int LINE_BYTES = 64;

    private final BlockCode code = BlockCode.forThisMachine();
    private final ScalarBlocks scalar =
            new ScalarBlocks(code.rows(), code.cols(), code.isUnsigned(), code.wholeRowsFrom());
    private final GuardedArea areaOfA = new GuardedArea(AREA_BYTES);
    private final GuardedArea areaOfPanels = new GuardedArea(AREA_BYTES);
    private final GuardedArea areaOfSums = new GuardedArea(AREA_BYTES);
    private final Arguments arguments =
            new Arguments(new GuardedArea(1 << 16).take(Arguments.BYTES, true));

    /** A wrong size of a call, or none. */
    private enum Spoiled {
        NOTHING,
        K,
        ODD_K,
        HUGE_K,
        NO_K,
        ROWS,
        NO_ROWS,
        PANELS,
        HUGE_PANELS,
        A,
        B,
        UNALIGNED,
        SUMS,
        PITCH,
        NEGATIVE_PITCH,
        READ_ONLY,
        HEAP
    }

    /** The call that an input stands for; what it lacks is 0. */
    public void call(byte[] input) {
        ByteBuffer numbers = ByteBuffer.wrap(Arrays.copyOf(input, 13));
        final BlockType type = BlockType.MULTIPLIED.get(upTo(numbers, 3));
        final int rows = 1 + upTo(numbers, code.rows());
        final long k = type.elements() * (1L + upTo(numbers, 5));
        final int panelCount = 1 + upTo(numbers, MOST_PANELS);
        final boolean resume = upTo(numbers, 2) == 1;
        final boolean atEnd = upTo(numbers, 2) == 1;
        final int gap = 4 * upTo(numbers, 40);
        final int from = upTo(numbers, 8);
        final int number = upTo(numbers, 3 * Spoiled.values().length);
        final boolean right = number >= Spoiled.values().length || number == 0;
        final Spoiled spoiled = right ? Spoiled.NOTHING : Spoiled.values()[number];
        SplittableRandom random = new SplittableRandom(numbers.getInt());
        BlockPanels layout = code.panels(type);
        int stepBytes = BlockPanels.rowStepBytes(rows);
        long steps = k / BlockPanels.STEP;
        MemorySegment a = areaOfA.take(from + steps * stepBytes + BlockCode.SLACK_BYTES, atEnd);
        fill(a, random);
        for (long step = 0; step < steps; step++) {
            for (int row = 0; row < rows; row++) {
                // -128 is no number of A.
                int sum = 0;
                for (int i = 0; i < BlockPanels.STEP; i++) {
                    long at = from + step * stepBytes;
                    at += BlockPanels.inStep(rows, row, i, rows >= code.wholeRowsFrom());
                    byte one = (byte) Math.max(-127, a.get(JAVA_BYTE, at));
                    a.set(JAVA_BYTE, at, one);
                    sum += one;
                }
                float scale = random.nextFloat() * (1 << random.nextInt(12));
                layout.writeStart(a, from + step * stepBytes, rows, row, sum, scale);
            }
        }
        long bFrom = (long) from * LINE_BYTES;
        MemorySegment b = areaOfPanels.take(bFrom + panelCount * layout.panelBytes(k), atEnd);
        // Any bytes are numbers and scales, of which some are infinite or NaN.
        fill(b, random);
        long pitch = (long) panelCount * code.cols() * Float.BYTES + gap;
        MemorySegment sums = areaOfSums.take(from + rows * pitch - gap, atEnd);
        fill(sums, random);
        MemorySegment expected = MemorySegment.ofArray(sums.toArray(JAVA_BYTE));
        code.sum(
                type,
                resume,
                switch (spoiled) {
                    case K -> 40L * type.elements();
                    case ODD_K -> k + 1;
                    case HUGE_K -> Long.MAX_VALUE / 32 * 32;
                    case NO_K -> 0;
                    default -> k;
                },
                spoiled == Spoiled.HEAP ? MemorySegment.ofArray(new byte[1 << 16]) : a,
                spoiled == Spoiled.A ? -1 : from,
                spoiled == Spoiled.ROWS ? code.rows() + 1 : spoiled == Spoiled.NO_ROWS ? 0 : rows,
                b,
                spoiled == Spoiled.B ? Long.MAX_VALUE : spoiled == Spoiled.UNALIGNED ? -16 : bFrom,
                spoiled == Spoiled.PANELS
                        ? panelCount + 1
                        : spoiled == Spoiled.HUGE_PANELS ? Integer.MAX_VALUE : panelCount,
                spoiled == Spoiled.READ_ONLY ? sums.asReadOnly() : sums,
                spoiled == Spoiled.SUMS ? sums.byteSize() : from,
                switch (spoiled) {
                    case PITCH -> Long.MAX_VALUE;
                    case NEGATIVE_PITCH -> -pitch;
                    default -> pitch;
                },
                arguments);
        if (!right && (rows > 1 || spoiled != Spoiled.PITCH)) {
            throw new AssertionError(spoiled + " was not noticed");
        }
        if (right) {
            scalar.sum(
                    type,
                    resume,
                    k,
                    a,
                    from,
                    rows,
                    b,
                    bFrom,
                    panelCount,
                    expected,
                    from,
                    pitch,
                    null);
            compare(sums, expected, from, type);
        }
    }

    private static void fill(MemorySegment memory, SplittableRandom random) {
        byte[] bytes = new byte[(int) memory.byteSize()];
        random.nextBytes(bytes);
        MemorySegment.copy(bytes, 0, memory, JAVA_BYTE, 0, bytes.length);
    }

    /** Which NaN a sum is depends on the order of operands. */
    private void compare(MemorySegment sums, MemorySegment expected, int from, BlockType type) {
        for (long at = from; at + Float.BYTES <= sums.byteSize(); at += Float.BYTES) {
            float found = sums.get(JAVA_FLOAT_UNALIGNED, at);
            float right = expected.get(JAVA_FLOAT_UNALIGNED, at);
            if (Float.floatToIntBits(found) != Float.floatToIntBits(right)) {
                throw new AssertionError(
                        "%s gave %s, not %s, at byte %s of %s"
                                .formatted(code.name(), found, right, at, type.label()));
            }
        }
    }

    private static int upTo(ByteBuffer numbers, int bound) {
        return (numbers.get() & 0xFF) % bound;
    }
}
