package dev.weft.bench.measure;

import java.util.List;

/** A product of {@code [m, k] x [k, n]}. */
public record Shape(long m, long n, long k) {

    public static Shape cube(long side) {
        return new Shape(side, side, side);
    }

    public double flops() {
        return 2.0 * m * n * k;
    }

    /** Floating-point operations per nanosecond are GFLOP/s. */
    public double gflops(double ns) {
        return flops() / ns;
    }

    /** M, N and K, as the programs that are compared take them. */
    public List<String> words() {
        return List.of(Long.toString(m), Long.toString(n), Long.toString(k));
    }

    /** As all of Weft's pages have it: M x K x N. */
    @Override
    public String toString() {
        return m + " x " + k + " x " + n;
    }
}
