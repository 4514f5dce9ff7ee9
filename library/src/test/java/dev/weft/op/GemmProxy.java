package dev.weft.op;

import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.gemm.Scratch;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** An engine with something that happens before each product. */
record GemmProxy(Gemm engine, Runnable before) implements Gemm {

    @Override
    public String name() {
        return engine.name();
    }

    @Override
    public int rowQuantum() {
        return engine.rowQuantum();
    }

    @Override
    public long blockRows() {
        return engine.blockRows();
    }

    @Override
    public long packedBytes(long k, long n) {
        return engine.packedBytes(k, n);
    }

    @Override
    public PackedB packed(long k, long n, MemorySegment memory) {
        return engine.packed(k, n, memory);
    }

    @Override
    public Scratch scratch(long k, long n, Arena arena) {
        return engine.scratch(k, n, arena);
    }

    @Override
    public void multiply(
            Matrix a, long aRow, long rows, PackedB b, Matrix c, long cRow, Scratch scratch) {
        before.run();
        engine.multiply(a, aRow, rows, b, c, cRow, scratch);
    }
}
