package dev.weft.gemm.code;

import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The kernel in Java, which also says what machine code must give. Thread-safe. */
public record ScalarBlocks(int rows, int cols, boolean isUnsigned, int wholeRowsFrom)
        implements BlockKernel {

    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    @Override
    public String name() {
        return "scalar";
    }

    @Override
    public void sum(
            BlockType type,
            boolean resume,
            long k,
            MemorySegment a,
            long aFrom,
            int rows,
            MemorySegment panels,
            long bFrom,
            int panelCount,
            MemorySegment sums,
            long sumsFrom,
            long pitch,
            Arguments arguments) {
        BlockPanels layout = panels(type);
        int[] numbers = new int[BlockPanels.STEP];
        for (int col = 0; col < panelCount * cols; col++) {
            long panel = bFrom + col / cols * layout.panelBytes(k);
            long target = sumsFrom + (long) col * Float.BYTES;
            for (int row = 0; row < rows && !resume; row++) {
                sums.set(FLOAT, target + row * pitch, 0);
            }
            for (long step = 0; step < k / BlockPanels.STEP; step++) {
                int place = col % cols;
                load(layout, panels, panel + step * layout.stepBytes(), place, numbers);
                long scales = panel + layout.numberBytes(k);
                long rowsAt = aFrom + step * BlockPanels.rowStepBytes(rows);
                for (int row = 0; row < rows; row++) {
                    long at = target + row * pitch;
                    float sum = sums.get(FLOAT, at);
                    float next =
                            add(
                                    layout,
                                    a,
                                    rowsAt,
                                    rows,
                                    row,
                                    rows >= wholeRowsFrom,
                                    panels,
                                    scales,
                                    step,
                                    place,
                                    numbers,
                                    sum);
                    sums.set(FLOAT, at, next);
                }
            }
        }
    }

    /** The numbers of a column in a step. */
    private static void load(
            BlockPanels layout, MemorySegment panels, long step, int place, int[] numbers) {
        int bytes = layout.isHalved() ? BlockPanels.STEP / 2 : BlockPanels.STEP;
        for (int i = 0; i < bytes; i++) {
            long group = (long) i / BlockPanels.GROUP * layout.cols() + place;
            byte one =
                    panels.get(
                            ValueLayout.JAVA_BYTE,
                            step + group * BlockPanels.GROUP + i % BlockPanels.GROUP);
            if (layout.isHalved()) {
                numbers[i] = one & 15;
                numbers[i + BlockPanels.STEP / 2] = one >> 4 & 15;
            } else {
                numbers[i] = layout.isUnsigned() ? one & 0xFF : one;
            }
        }
    }

    private static float add(
            BlockPanels layout,
            MemorySegment a,
            long rowsAt,
            int rows,
            int row,
            boolean wholeRows,
            MemorySegment panels,
            long scales,
            long step,
            int place,
            int[] numbers,
            float sum) {
        int dot = 0;
        for (int i = 0; i < BlockPanels.STEP; i++) {
            long at = rowsAt + BlockPanels.inStep(rows, row, i, wholeRows);
            dot += a.get(ValueLayout.JAVA_BYTE, at) * numbers[i];
        }
        long start = rowsAt + (long) rows * BlockPanels.STEP + (long) row * Integer.BYTES;
        float ofA = a.get(FLOAT, start + (long) rows * Integer.BYTES);
        int size = layout.scaleBytes();
        if (!layout.hasOffsets()) {
            float scale = half(panels, scales + step * size, place);
            return Math.fma(scale * (dot + a.get(INT, start)), ofA, sum);
        }
        long of = scales + step / BlockPanels.STEPS_OF_K * (2L + BlockPanels.STEPS_OF_K) * size;
        long own = of + (2 + step % BlockPanels.STEPS_OF_K) * size + place;
        float s = half(panels, of, place) * unsigned(panels, own);
        float m = half(panels, of + size, place) * unsigned(panels, own + layout.cols());
        return Math.fma(Math.fma(s, dot, m * a.get(FLOAT, start)), ofA, sum);
    }

    private static int unsigned(MemorySegment panels, long at) {
        return panels.get(ValueLayout.JAVA_BYTE, at) & 0xFF;
    }

    private static float half(MemorySegment panels, long scales, int place) {
        return DType.FP16.read(panels, scales + (long) place * Short.BYTES);
    }
}
