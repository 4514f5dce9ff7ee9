import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.plan.Shards;
import dev.weft.tensor.*;
import java.lang.foreign.Arena;
import java.util.Arrays;

/**
 * A first program: every rank has some rows of A and all of B, as arrays, and gets all of C = A x B.
 * The ranks are threads, or whatever has started the program:
 *
 * <pre>
 * ./weft java examples/first/First.java                               four ranks, threads of this JVM
 * ./weft launch -n 4 -- ./weft java examples/first/First.java         processes of this host
 * ./weft launch --mpi -n 4 -- ./weft java examples/first/First.java   MPI, on one host or many
 * </pre>
 */
static final int M = 1000;
static final int K = 64;
static final int N = 3;

void main() {
    float[] b = new float[K * N];
    for (int i = 0; i < b.length; i++) {
        b[i] = i % N;
    }
    try (World world = World.auto(4); Arena arena = Arena.ofShared()) {
        Matrix weights = Matrix.copyOf(arena, b, K, N);
        world.run(fabric -> {
            Shards shards = Shards.even(M, fabric.size());
            float[] rows = new float[(int) shards.rows(fabric.rank()) * K];
            Arrays.fill(rows, fabric.rank() + 1); // this rank's rows of A
            Matrix shard = Matrix.copyOf(arena, rows, shards.rows(fabric.rank()), K);
            try (var op = AllGatherMatmul.on(fabric).a(shards, DType.FP32).b(weights).prepare()) {
                float[][] c = op.call(shard).product().toArrays();
                IO.println("rank " + fabric.rank() + " of " + fabric.size() + ": the last row of C is "
                        + Arrays.toString(c[M - 1]));
            }
        });
    }
}
