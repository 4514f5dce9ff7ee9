package dev.weft.gemm.code;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The code for AMX: by {@link X86Interpreter} everywhere, and on the processor that has it, with
 * operands that end at pages that nobody may touch.
 */
class X86AmxTilesTest {

    private static final TileCode.Written CODE = X86AmxTiles.write();
    private static final Tiles TWIN = new Bf16Tiles();
    private static final int TILE = 32;

    /** What executes the code. */
    private interface Machine {
        byte[] run(byte[] code, int entry, byte[] a, byte[] b, byte[] c, long... arguments);
    }

    private static Machine machine(boolean processor) {
        if (!processor) {
            return X86Interpreter::run;
        }
        assumeTrue(
                KernelMachine.X86.unavailable("amx_bf16").isEmpty(),
                () -> KernelMachine.X86.unavailable("amx_bf16").orElseThrow());
        return KernelMachine.X86::run;
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void sumsOfWholeNumbersAreExact(boolean processor) {
        Machine machine = machine(processor);
        for (int depth : new int[] {0, 1, 31, 32, 33, 100, 128}) {
            for (int tiles = 1; tiles <= 3; tiles++) {
                Sum sum = new Sum(depth, tiles, new Random(depth + tiles), true);
                assertArrayEquals(sum.expected(), sum.found(machine), () -> "depth " + depth);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void sumsOfAnyNumbersAreWithinTheirBound(boolean processor) {
        Machine machine = machine(processor);
        for (int depth : new int[] {1, 45, 512}) {
            Sum sum = new Sum(depth, 2, new Random(depth), false);
            float[] found = sum.found(machine);
            for (int i = 0; i < found.length; i++) {
                double bound = (depth + 2) * 0x1p-24 * sum.magnitudes[i];
                assertEquals(sum.exact[i], found[i], bound, "depth " + depth + ", " + i);
            }
        }
    }

    /** Sums that lie {@code pitch} floats apart, all operands some bytes into their memory. */
    private static final class Sum {
        private static final int A_FROM = 64;
        private static final int B_FROM = 128;
        private static final int C_FROM = 12;

        final int depth;
        final int tiles;
        final int panels;
        final int pitch;
        final boolean resume;
        final byte[] a;
        final byte[] b;
        final float[] c;
        final double[] exact;
        final double[] magnitudes;

        Sum(int depth, int tiles, Random random, boolean whole) {
            this.depth = depth;
            this.tiles = tiles;
            this.panels = 1 + random.nextInt(3);
            int width = panels * TILE;
            this.pitch = width + random.nextInt(3) * 5;
            this.resume = random.nextBoolean();
            int rows = tiles * TILE;
            int steps = Math.ceilDiv(depth, TILE);
            a = new byte[A_FROM + tiles * steps * 2048];
            b = new byte[B_FROM + panels * steps * 2048];
            c = new float[C_FROM / 4 + (rows - 1) * pitch + width];
            for (int i = 0; i < c.length; i++) {
                c[i] = whole ? random.nextInt(1000) : random.nextFloat();
            }
            float[][] left = numbers(random, rows, depth, whole);
            float[][] right = numbers(random, width, depth, whole);
            for (int k = 0; k < depth; k++) {
                for (int row = 0; row < rows; row++) {
                    long step = row / TILE * steps + k / TILE;
                    long at = A_FROM + step * 2048 + row % TILE * 64 + k % TILE * 2;
                    DType.BF16.write(MemorySegment.ofArray(a), at, left[row][k]);
                }
                for (int col = 0; col < width; col++) {
                    long panel = B_FROM + col / TILE * steps * 2048L;
                    long at = panel + Tiles.inPanel(DType.BF16, true, TILE, k, col % TILE);
                    DType.BF16.write(MemorySegment.ofArray(b), at, right[col][k]);
                }
            }
            exact = new double[c.length];
            magnitudes = new double[c.length];
            for (int i = 0; i < c.length; i++) {
                exact[i] = c[i];
            }
            for (int row = 0; row < rows; row++) {
                for (int col = 0; col < width; col++) {
                    int at = C_FROM / 4 + row * pitch + col;
                    exact[at] = resume ? c[at] : 0;
                    magnitudes[at] = exact[at];
                    for (int k = 0; k < depth; k++) {
                        exact[at] += (double) left[row][k] * right[col][k];
                        magnitudes[at] += Math.abs((double) left[row][k] * right[col][k]);
                    }
                }
            }
        }

        private static float[][] numbers(Random random, int rows, int cols, boolean whole) {
            float[][] numbers = new float[rows][cols];
            for (float[] row : numbers) {
                for (int i = 0; i < cols; i++) {
                    float any = (float) random.nextGaussian();
                    row[i] = whole ? random.nextInt(-100, 101) : DType.BF16.round(any);
                }
            }
            return numbers;
        }

        float[] expected() {
            float[] expected = new float[exact.length];
            for (int i = 0; i < expected.length; i++) {
                expected[i] = (float) exact[i];
            }
            return expected;
        }

        float[] found(Machine machine) {
            ByteBuffer before = buffer(c.length * Float.BYTES);
            before.asFloatBuffer().put(c);
            byte[] after =
                    machine.run(
                            CODE.code(),
                            CODE.sums().get(DType.BF16)[0][0],
                            a,
                            b,
                            before.array(),
                            A_FROM,
                            B_FROM,
                            C_FROM,
                            depth,
                            (long) pitch * Float.BYTES,
                            resume ? 1 : 0,
                            tiles,
                            panels);
            float[] found = new float[c.length];
            ByteBuffer.wrap(after).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(found);
            return found;
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void packedTilesHoldTheRowsAndRepeatTheLast(boolean processor) {
        Machine machine = machine(processor);
        for (int depth : new int[] {0, 1, 2, 31, 32, 33, 64, 95, 96}) {
            for (int count : new int[] {1, 5, 31, 32, 33, 64, 70}) {
                pack(machine, count, depth, new Random(depth));
            }
        }
    }

    /** A ends with its last row, so that a step past it is noticed. */
    private static void pack(Machine machine, int count, int depth, Random random) {
        int from = 2 * random.nextInt(3);
        int to = 64 * random.nextInt(3);
        int pitch = 2 * (depth + random.nextInt(5));
        byte[] a = new byte[from + (count - 1) * pitch + 2 * depth];
        random.nextBytes(a);
        byte[] packed = new byte[to + Math.ceilDiv(count, 32) * (int) TWIN.tileBytes(depth)];
        random.nextBytes(packed);
        byte[] expected = packed.clone();
        TWIN.pack(
                DType.BF16,
                MemorySegment.ofArray(a),
                from,
                pitch,
                count,
                depth,
                MemorySegment.ofArray(expected),
                to,
                null);
        byte[] found =
                machine.run(
                        CODE.code(),
                        CODE.packs().get(DType.BF16),
                        a,
                        new byte[0],
                        packed,
                        from,
                        0,
                        to,
                        depth,
                        pitch,
                        0,
                        count);
        assertArrayEquals(expected, found, () -> count + " x " + depth);
    }

    /** The interpreter would notice one that is wrong: it is no proof of anything otherwise. */
    @Test
    void aStepPastTheMemoryIsNoticed() {
        byte[] c = new byte[31 * 128 + 127];
        IndexOutOfBoundsException e =
                assertThrows(
                        IndexOutOfBoundsException.class,
                        () ->
                                X86Interpreter.run(
                                        CODE.code(),
                                        CODE.sums().get(DType.BF16)[0][0],
                                        new byte[0],
                                        new byte[0],
                                        c,
                                        0,
                                        0,
                                        0,
                                        0,
                                        128,
                                        0,
                                        1,
                                        1));
        assertTrue(e.getMessage().contains("4032 + 64"), e.getMessage());
    }

    private static ByteBuffer buffer(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
}
