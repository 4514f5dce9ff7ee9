package dev.weft.bench.peers;

import dev.weft.bench.measure.ProductCheck;
import dev.weft.ffi.OpenBlas;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/** The product as a user of OpenBLAS calls it, with OpenBLAS's own threads. Used by one thread. */
public final class OpenBlasProduct implements AutoCloseable {

    private final Arena arena = Arena.ofShared();
    private final OpenBlasLibrary library;
    private final Matrix a;
    private final Matrix b;
    private final Matrix c;

    /** Both operands are fp32, without gaps, and stay the caller's. */
    public OpenBlasProduct(OpenBlasLibrary library, Matrix a, Matrix b, int threads) {
        this.library = library;
        this.a = a;
        this.b = b;
        this.c = Matrix.allocate(arena, DType.FP32, a.rows(), b.cols());
        library.threads(threads);
        takeNs();
        ProductCheck.require(library.name(), a, b, c);
    }

    public long takeNs() {
        int m = Math.toIntExact(a.rows());
        int n = Math.toIntExact(b.cols());
        int k = Math.toIntExact(a.cols());
        long aAt = a.data().address();
        long bAt = b.data().address();
        long cAt = c.data().address();
        long startNs = System.nanoTime();
        OpenBlas.sgemm(false, m, n, k, aAt, k, bAt, n, cAt, n);
        return System.nanoTime() - startNs;
    }

    @Override
    public void close() {
        library.threads(1);
        arena.close();
    }
}
