package dev.weft.tensor;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Turns floats into blocks. Scales are rounded to the block's precision first; then each element
 * becomes the number whose value is nearest, ties to even numbers. For one thread.
 */
final class Quantizer {

    private static final int GROUP = 32;
    private static final int GROUPS = 8;
    private static final int MOST_OF_SCALE = 63;

    private final BlockType type;
    private final float[] scales = new float[GROUPS];
    private final float[] mins = new float[GROUPS];

    Quantizer(BlockType type) {
        if (!BlockType.MULTIPLIED.contains(type)) {
            throw new IllegalArgumentException(
                    "quantize to %s: expected q8_0, q4_0 or q4_k".formatted(type.label()));
        }
        this.type = type;
    }

    /** Writes the block of the elements from {@code at} on. */
    void write(float[] x, int at, MemorySegment to, long offset) {
        for (int i = at; i < at + type.elements(); i++) {
            if (!Float.isFinite(x[i])) {
                throw new IllegalArgumentException(
                        "cannot quantize %s to %s: expected finite elements"
                                .formatted(x[i], type.label()));
            }
        }
        switch (type) {
            case Q8_0 -> eight(x, at, to, offset);
            case Q4_0 -> four(x, at, to, offset);
            default -> fourWithOffsets(x, at, to, offset);
        }
    }

    private void eight(float[] x, int at, MemorySegment to, long offset) {
        float largest = 0;
        for (int i = at; i < at + GROUP; i++) {
            largest = Math.max(largest, Math.abs(x[i]));
        }
        float d = scale(largest / 127, to, offset);
        for (int i = 0; i < GROUP; i++) {
            byte q = (byte) number(x[at + i], d, -127, 127);
            to.set(ValueLayout.JAVA_BYTE, offset + 2 + i, q);
        }
    }

    /** The element of the largest magnitude becomes -8, the only number without a negative. */
    private void four(float[] x, int at, MemorySegment to, long offset) {
        float largest = 0;
        for (int i = at; i < at + GROUP; i++) {
            largest = Math.abs(x[i]) > Math.abs(largest) ? x[i] : largest;
        }
        float d = scale(largest / -8, to, offset);
        for (int i = 0; i < GROUP / 2; i++) {
            int low = number(x[at + i], d, -8, 7) + 8;
            int high = number(x[at + GROUP / 2 + i], d, -8, 7) + 8;
            to.set(ValueLayout.JAVA_BYTE, offset + 2 + i, (byte) (low | high << 4));
        }
    }

    private void fourWithOffsets(float[] x, int at, MemorySegment to, long offset) {
        float largestScale = 0;
        float largestMin = 0;
        for (int j = 0; j < GROUPS; j++) {
            float least = 0;
            float most = 0;
            for (int i = 0; i < GROUP; i++) {
                least = Math.min(least, x[at + j * GROUP + i]);
                most = Math.max(most, x[at + j * GROUP + i]);
            }
            mins[j] = -least;
            scales[j] = most / 15 - least / 15;
            largestScale = Math.max(largestScale, scales[j]);
            largestMin = Math.max(largestMin, mins[j]);
        }
        float d = scale(largestScale / MOST_OF_SCALE, to, offset);
        float min = scale(largestMin / MOST_OF_SCALE, to, offset + 2);
        to.asSlice(offset + 4, 12).fill((byte) 0);
        for (int j = 0; j < GROUPS; j++) {
            int ofScale = number(scales[j], d, 0, MOST_OF_SCALE);
            int ofMin = number(mins[j], min, 0, MOST_OF_SCALE);
            setScales(j, ofScale, ofMin, to, offset + 4);
            for (int i = 0; i < GROUP; i++) {
                int q = number(x[at + j * GROUP + i] + min * ofMin, d * ofScale, 0, 15);
                long place = offset + 16 + (long) (j / 2) * GROUP + i;
                // Groups with even numbers come first, and clear the byte.
                int low = j % 2 == 0 ? 0 : to.get(ValueLayout.JAVA_BYTE, place);
                to.set(ValueLayout.JAVA_BYTE, place, (byte) (low | q << j % 2 * 4));
            }
        }
    }

    /** The inverse of {@link BlockType#scaleOf} and {@link BlockType#offsetOf}. */
    private static void setScales(int j, int scale, int min, MemorySegment to, long at) {
        if (j < 4) {
            add(to, at + j, scale);
            add(to, at + 4 + j, min);
        } else {
            add(to, at + 4 + j, scale & 15 | (min & 15) << 4);
            add(to, at + j - 4, scale >> 4 << 6);
            add(to, at + j, min >> 4 << 6);
        }
    }

    private static void add(MemorySegment to, long at, int bits) {
        to.set(ValueLayout.JAVA_BYTE, at, (byte) (to.get(ValueLayout.JAVA_BYTE, at) | bits));
    }

    /** Stores a scale as fp16 and returns it. */
    private float scale(float exact, MemorySegment to, long offset) {
        short half = Float.floatToFloat16(exact);
        float rounded = Float.float16ToFloat(half);
        if (Float.isInfinite(rounded)) {
            throw new IllegalArgumentException(
                    "cannot quantize to %s with a scale of %s: expected at most 65504"
                            .formatted(type.label(), exact));
        }
        to.set(DType.SHORT, offset, half);
        return rounded;
    }

    private static int number(float x, float scale, int least, int most) {
        return scale == 0 ? 0 : (int) Math.clamp(Math.rint((double) x / scale), least, most);
    }
}
