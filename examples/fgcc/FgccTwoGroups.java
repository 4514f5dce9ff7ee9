// FGCC: allgather_compute_matmul in two replica groups of 4 ranks, with 2 programs per rank.
// Run: ./weft java examples/fgcc/FgccTwoGroups.java

import dev.weft.compat.Fgcc;
import dev.weft.compat.FgccConfig;
import dev.weft.compat.FgccResult;
import dev.weft.fabric.World;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Random;

void main() {
    int tpDegree = 4;
    int numGroups = 2;
    int m = 64; // rows of A on each rank
    int k = 256;
    int n = 96; // columns of B on each rank
    try (Arena arena = Arena.ofShared();
            World world = World.threads(tpDegree * numGroups)) {
        Matrix a = Matrix.allocate(arena, DType.BF16, numGroups * tpDegree * m, k);
        Matrix b = Matrix.allocate(arena, DType.BF16, k, numGroups * tpDegree * n);
        Random random = new Random(19);
        a.fill(random::nextGaussian);
        b.fill(random::nextGaussian);
        world.run(
                fabric -> {
                    int rank = fabric.rank();
                    Matrix lhs = a.rows(rank * m, m);
                    Matrix rhs = b.block(0, k, rank * n, n);
                    FgccConfig config = FgccConfig.DEFAULT.withLnc(2);
                    try (FgccResult<Matrix> result =
                            Fgcc.allgatherComputeMatmul(
                                    fabric, lhs, rhs, tpDegree, numGroups, false, config)) {
                        // The rows of this rank's group, in natural order.
                        Matrix gathered = a.rows(rank / tpDegree * tpDegree * m, tpDegree * m);
                        check(gathered, rhs, result.product());
                        IO.println(
                                "rank "
                                        + rank
                                        + ": "
                                        + result.path()
                                        + " "
                                        + Arrays.toString(result.shape()));
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
