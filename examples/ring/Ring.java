// The ring tutorial: all-gather + matmul on a ring of 4 ranks, each product checked by its own rank.
// Run: java --add-modules jdk.incubator.vector --enable-native-access=ALL-UNNAMED
//          -cp <weft and jackson-core jars> examples/ring/Ring.java

import dev.weft.compat.RingAllGatherMatmul;
import dev.weft.compat.RingOutput;
import dev.weft.fabric.World;
import dev.weft.gemm.Float64Oracle;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.NormalData;
import java.lang.foreign.Arena;
import java.util.Arrays;

void main() {
    int ranks = 4;
    int m = 64; // rows of A on each rank
    int k = 256;
    int nLocal = 96; // columns of B on each rank
    try (Arena arena = Arena.ofShared();
            World world = World.threads(ranks)) {
        Matrix a = Matrix.allocate(arena, DType.BF16, ranks * m, k);
        Matrix b = Matrix.allocate(arena, DType.BF16, k, ranks * nLocal);
        new NormalData(19, 0).fill(a);
        new NormalData(19, 1).fill(b);
        world.run(
                fabric -> {
                    int rank = fabric.rank();
                    Matrix rows = a.rows(rank * m, m);
                    Matrix columns = b.block(0, k, rank * nLocal, nLocal);
                    try (var ring = RingAllGatherMatmul.prepare(fabric, m, DType.BF16, columns)) {
                        RingOutput output = ring.call(rows);
                        // Slot s: the rows of rank s times this rank's columns.
                        for (int s = 0; s < ranks; s++) {
                            var found =
                                    new Float64Oracle(a.rows(s * m, m), columns, false)
                                            .check(output.slot(s));
                            if (!found.withinBound()) {
                                throw new IllegalStateException(found.describe());
                            }
                        }
                        IO.println("rank " + rank + ": " + Arrays.toString(output.shape()));
                    }
                });
    }
}
