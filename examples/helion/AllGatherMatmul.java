import dev.weft.compat.*;
import dev.weft.fabric.World;
import dev.weft.gemm.Float64Oracle;
import dev.weft.tensor.*;
import java.lang.foreign.Arena;

/** The Helion example's test, smaller, with gathered A and progress that serve several calls. */
void main() {
    int ranks = 4;
    int splits = 2;
    long m = 256;
    long n = 208;
    long k = 512;
    try (Arena arena = Arena.ofShared(); World world = World.threads(ranks)) {
        Matrix b = Matrix.allocate(arena, DType.BF16, n, k); // [N, K]: given as transposed
        new NormalData(42, 100).fill(b);
        world.run(fabric -> {
            Matrix aOut = Matrix.allocate(arena, DType.BF16, m, k);
            try (HelionShared a = Helion.empty(fabric, m / ranks, k, DType.BF16);
                    HelionProgress progress = Helion.progress(fabric, splits)) {
                for (int call = 0; call < 3; call++) {
                    new NormalData(42 + call, fabric.rank()).fill(a.local());
                    HelionResult result =
                            Helion.allGatherMatmul(fabric, a, b, true, aOut, progress, splits);
                    var deviation = new Float64Oracle(aOut, b, true).check(result.c(), 0, m - 1);
                    if (!deviation.withinBound()) {
                        throw new IllegalStateException(deviation.describe());
                    }
                    if (fabric.rank() == 0) {
                        IO.println("call " + call + ": " + result.c().describe() + " "
                                + deviation.describe());
                    }
                }
            }
        });
    }
}
