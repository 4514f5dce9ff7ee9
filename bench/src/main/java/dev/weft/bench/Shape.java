package dev.weft.bench;

/** A product of {@code [m, k] x [k, n]}. */
record Shape(long m, long n, long k) {

    static Shape cube(long side) {
        return new Shape(side, side, side);
    }

    double flops() {
        return 2.0 * m * n * k;
    }

    /** Floating-point operations per nanosecond are GFLOP/s. */
    double gflops(double ns) {
        return flops() / ns;
    }

    @Override
    public String toString() {
        return m + " x " + n + " x " + k;
    }
}
