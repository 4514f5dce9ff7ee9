// The Ascend example's operator: full-mesh push, chunks of tiles, waits for summary counters.
// Run: java --add-modules jdk.incubator.vector --enable-native-access=ALL-UNNAMED
//          -cp <weft and jackson-core jars> examples/ascend/Ascend.java

import dev.weft.fabric.World;
import dev.weft.gemm.Float64Oracle;
import dev.weft.op.AllGatherMatmul;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.NormalData;
import java.lang.foreign.Arena;

void main() {
    Shards shards = Shards.even(512, 2);
    try (Arena arena = Arena.ofShared();
            World world = World.threads(2)) {
        Matrix a = Matrix.allocate(arena, DType.FP16, 512, 512);
        Matrix b = Matrix.allocate(arena, DType.FP16, 512, 256);
        new NormalData(19, 0).fill(a);
        new NormalData(19, 1).fill(b);
        world.run(
                fabric -> {
                    int rank = fabric.rank();
                    Matrix shard = a.rows(shards.firstRow(rank), shards.rows(rank));
                    try (AllGatherMatmul op =
                            dev.weft.compat.Ascend.allGatherGemm(
                                    fabric, shards, DType.FP16, b, 128, 256, 1, 1)) {
                        var found = new Float64Oracle(a, b, false).check(op.call(shard).product());
                        IO.println("rank " + rank + ": " + found.describe());
                        if (!found.withinBound()) {
                            throw new IllegalStateException("wrong product");
                        }
                    }
                });
    }
}
