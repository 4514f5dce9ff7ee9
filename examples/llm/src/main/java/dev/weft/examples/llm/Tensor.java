package dev.weft.examples.llm;

import dev.weft.fabric.Fabric;
import dev.weft.op.Weights;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.util.stream.IntStream;

/**
 * A weight of [N, K], as files have it: a matrix, or blocks of 8 or 4 bits that are multiplied as
 * they are. One of the two is null.
 */
record Tensor(Matrix matrix, QuantizedMatrix blocks) {

    static Tensor of(Matrix matrix) {
        return new Tensor(matrix, null);
    }

    static Tensor of(QuantizedMatrix blocks) {
        return new Tensor(null, blocks);
    }

    long rows() {
        return blocks == null ? matrix.rows() : blocks.rows();
    }

    long cols() {
        return blocks == null ? matrix.cols() : blocks.cols();
    }

    /** K can be cut at multiples of this. */
    int quantum() {
        return blocks == null ? 1 : blocks.type().elements();
    }

    /** Some of the N. */
    Tensor rows(long first, long count) {
        return part(first, count, 0, cols());
    }

    /** Some of the K. */
    Tensor cols(long first, long count) {
        return part(0, rows(), first, count);
    }

    private Tensor part(long row, long rows, long col, long cols) {
        return blocks == null
                ? of(matrix.block(row, rows, col, cols))
                : of(blocks.block(row, rows, col, cols));
    }

    /** Null unless it is in blocks. */
    BlockType type() {
        return blocks == null ? null : blocks.type();
    }

    /** As blocks of a type; K must be a multiple of their elements. */
    Tensor quantized(Arena arena, BlockType wanted) {
        if (type() == wanted) {
            return this;
        }
        try (Arena wide = Arena.ofShared()) {
            Matrix values = blocks == null ? matrix : blocks.dequantize(wide);
            return of(QuantizedMatrix.ofB(arena, values, true, wanted));
        }
    }

    long bytes() {
        return blocks == null ? rows() * cols() * Float.BYTES : blocks.bytes();
    }

    /** Writes all rows, without gaps. */
    void write(FileChannel out, long at) throws IOException {
        long rowBytes = bytes() / rows();
        for (long row = 0; row < rows(); row++) {
            MemorySegment bytes =
                    blocks == null
                            ? matrix.data().asSlice(matrix.offset(row, 0), rowBytes)
                            : blocks.data().asSlice(blocks.offset(row, 0), rowBytes);
            GgufWriter.write(out, bytes.asByteBuffer(), at + row * rowBytes);
        }
    }

    /** Collective. */
    Weights pack(Fabric fabric) {
        return blocks == null
                ? Weights.pack(fabric, matrix, true, DType.FP32, "portable")
                : Weights.pack(fabric, blocks, DType.FP32, "portable");
    }

    /** All rows, rounded to the type of {@code to}. */
    void round(Matrix to) {
        IntStream.range(0, Math.toIntExact(rows()))
                .parallel()
                .forEach(
                        row -> {
                            try (Arena arena = Arena.ofConfined()) {
                                Matrix wide = Matrix.allocate(arena, DType.FP32, 1, cols());
                                row(row, wide, 0);
                                for (long col = 0; col < cols(); col++) {
                                    to.set(row, col, wide.get(0, col));
                                }
                            }
                        });
    }

    /** A row, as fp32. */
    void row(long index, Matrix to, long toRow) {
        try (Arena arena = Arena.ofConfined()) {
            Matrix wide =
                    blocks == null
                            ? matrix.rows(index, 1)
                            : blocks.block(index, 1, 0, blocks.cols()).dequantize(arena);
            to.rows(toRow, 1).copyFrom(wide);
        }
    }
}
