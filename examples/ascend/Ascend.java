// The Ascend example's operator: full-mesh push, chunks of tiles, waits for summary counters.
// Run: ./weft java examples/ascend/Ascend.java

import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Random;

void main() {
    Shards shards = Shards.even(512, 2);
    try (Arena arena = Arena.ofShared();
            World world = World.threads(2)) {
        Matrix a = Matrix.allocate(arena, DType.FP16, 512, 512);
        Matrix b = Matrix.allocate(arena, DType.FP16, 512, 256);
        Random random = new Random(19);
        a.fill(random::nextGaussian);
        b.fill(random::nextGaussian);
        world.run(
                fabric -> {
                    int rank = fabric.rank();
                    Matrix shard = a.rows(shards.firstRow(rank), shards.rows(rank));
                    try (AllGatherMatmul op =
                            dev.weft.compat.Ascend.allGatherGemm(
                                    fabric, shards, DType.FP16, b, 128, 256, 1, 1)) {
                        Matrix c = op.call(shard).product();
                        check(a, b, c);
                        IO.println("rank " + rank + ": " + c.describe());
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
