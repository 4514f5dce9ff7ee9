// FGCC: allgather_compute_matmul in two replica groups of 4 ranks, with 2 programs per rank.
// Run: java --add-modules jdk.incubator.vector --enable-native-access=ALL-UNNAMED
//          -cp <weft and jackson-core jars> examples/fgcc/FgccTwoGroups.java

import dev.weft.compat.Fgcc;
import dev.weft.compat.FgccConfig;
import dev.weft.compat.FgccResult;
import dev.weft.fabric.World;
import dev.weft.gemm.Float64Oracle;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.NormalData;
import java.lang.foreign.Arena;
import java.util.Arrays;

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
        new NormalData(19, 0).fill(a);
        new NormalData(19, 1).fill(b);
        world.run(
                fabric -> {
                    int rank = fabric.rank();
                    Matrix lhs = a.rows(rank * m, m);
                    Matrix rhs = b.block(0, k, rank * n, n);
                    FgccResult result =
                            Fgcc.allgatherComputeMatmul(
                                    fabric,
                                    lhs,
                                    rhs,
                                    tpDegree,
                                    numGroups,
                                    false,
                                    FgccConfig.DEFAULT.withLnc(2));
                    // The rows of this rank's group, in natural order.
                    Matrix gathered = a.rows(rank / tpDegree * tpDegree * m, tpDegree * m);
                    var found = new Float64Oracle(gathered, rhs, false).check(result.product());
                    if (!found.withinBound()) {
                        throw new IllegalStateException(found.describe());
                    }
                    IO.println(
                            "rank "
                                    + rank
                                    + ": "
                                    + result.path()
                                    + " "
                                    + Arrays.toString(result.shape()));
                });
    }
}
