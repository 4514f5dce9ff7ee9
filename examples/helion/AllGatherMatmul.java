import dev.weft.compat.*;
import dev.weft.fabric.World;
import dev.weft.tensor.*;
import java.lang.foreign.Arena;
import java.util.Random;

/** The Helion example's test, smaller, with gathered A and progress that serve several calls. */
void main() {
    int ranks = 4;
    int splits = 2;
    long m = 256;
    long n = 208;
    long k = 512;
    try (Arena arena = Arena.ofShared(); World world = World.threads(ranks)) {
        Matrix b = Matrix.allocate(arena, DType.BF16, n, k); // [N, K]: given as transposed
        b.fill(new Random(100)::nextGaussian);
        world.run(fabric -> {
            Matrix aOut = Matrix.allocate(arena, DType.BF16, m, k);
            HelionProgress progress = Helion.progress(fabric, splits);
            try (HelionShared<Matrix> a = Helion.empty(fabric, m / ranks, k, DType.BF16)) {
                Random random = new Random(fabric.rank());
                for (int call = 0; call < 3; call++) {
                    a.local().fill(random::nextGaussian);
                    HelionResult<Matrix> result =
                            Helion.allGatherMatmul(fabric, a, b, true, aOut, progress, splits);
                    check(aOut, b, result.c());
                    if (fabric.rank() == 0) {
                        IO.println("call " + call + ": " + result.c().describe());
                    }
                }
            }
        });
    }
}

/** Multiplies again, element by element in double, and compares. */
void check(Matrix a, Matrix b, Matrix c) {
    for (long row = 0; row < c.rows(); row++) {
        for (long col = 0; col < c.cols(); col++) {
            double expected = 0;
            for (long k = 0; k < a.cols(); k++) {
                expected += (double) a.get(row, k) * b.get(col, k);
            }
            if (Math.abs(c.get(row, col) - expected) > 0.01 * Math.max(1, Math.abs(expected))) {
                throw new IllegalStateException(
                        "[" + row + ", " + col + "] " + c.get(row, col) + ", not " + expected);
            }
        }
    }
}
