package dev.weft.op;

import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.gemm.Scratch;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.LongConsumer;

/**
 * An engine with something that happens before and after each product.
 *
 * @param bits what it says of its bits
 * @param before given the row of C from which on the product is
 * @param after given that row and the number of rows
 */
record GemmProxy(Gemm engine, Bits bits, LongConsumer before, Products after) implements Gemm {

    interface Products {
        void done(long firstRow, long rows);
    }

    GemmProxy(Gemm engine, LongConsumer before, Products after) {
        this(engine, engine.bits(), before, after);
    }

    GemmProxy(Gemm engine, Runnable before) {
        this(engine, row -> before.run(), (row, rows) -> {});
    }

    @Override
    public String name() {
        return engine.name();
    }

    @Override
    public int sumQuantum() {
        return engine.sumQuantum();
    }

    @Override
    public boolean multiplies(DType type) {
        return engine.multiplies(type);
    }

    @Override
    public int rowQuantum() {
        return engine.rowQuantum();
    }

    @Override
    public int colQuantum() {
        return engine.colQuantum();
    }

    @Override
    public long blockRows() {
        return engine.blockRows();
    }

    @Override
    public long packedBytes(long k, long n, DType type) {
        return engine.packedBytes(k, n, type);
    }

    @Override
    public PackedB packed(long k, long n, DType type, MemorySegment memory) {
        return engine.packed(k, n, type, memory);
    }

    @Override
    public Scratch scratch(long k, long n, Arena arena) {
        return engine.scratch(k, n, arena);
    }

    @Override
    public void multiply(
            Matrix a,
            long aRow,
            long rows,
            PackedB b,
            long firstCol,
            long cols,
            boolean resume,
            Matrix c,
            long cRow,
            Scratch scratch) {
        before.accept(cRow);
        engine.multiply(a, aRow, rows, b, firstCol, cols, resume, c, cRow, scratch);
        after.done(cRow, rows);
    }
}
