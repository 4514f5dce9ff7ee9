// The ring tutorial: all-gather + matmul on a ring of 4 ranks, each product checked by its own rank.
// Run: ./weft java examples/ring/Ring.java

import dev.weft.compat.RingAllGatherMatmul;
import dev.weft.fabric.World;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Random;

void main() {
    int ranks = 4;
    int m = 64; // rows of A on each rank
    int k = 256;
    int nLocal = 96; // columns of B on each rank
    try (Arena arena = Arena.ofShared();
            World world = World.threads(ranks)) {
        Matrix a = Matrix.allocate(arena, DType.BF16, ranks * m, k);
        Matrix b = Matrix.allocate(arena, DType.BF16, k, ranks * nLocal);
        Random random = new Random(19);
        a.fill(random::nextGaussian);
        b.fill(random::nextGaussian);
        world.run(
                fabric -> {
                    int rank = fabric.rank();
                    Matrix rows = a.rows(rank * m, m);
                    Matrix columns = b.block(0, k, rank * nLocal, nLocal);
                    try (var ring = RingAllGatherMatmul.prepare(fabric, m, DType.BF16, columns)) {
                        // The rows of rank 0, 1, ... times this rank's columns.
                        Matrix output = ring.call(rows);
                        check(a, columns, output);
                        IO.println("rank " + rank + ": " + output.describe());
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
                expected += (double) a.get(row, k) * b.get(k, col);
            }
            if (Math.abs(c.get(row, col) - expected) > 0.01 * Math.max(1, Math.abs(expected))) {
                throw new IllegalStateException(
                        "[" + row + ", " + col + "] " + c.get(row, col) + ", not " + expected);
            }
        }
    }
}
