package consumer;

import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/** Two ranks multiply the rows that both own; each prints its whole product. */
public final class Main {

    public static void main(String[] arguments) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(2)) {
            Matrix b = Matrix.copyOf(arena, new float[][] {{1, 10}, {2, 20}});
            Matrix[] shards = {
                Matrix.copyOf(arena, new float[][] {{1, 2}}),
                Matrix.copyOf(arena, new float[][] {{3, 4}, {5, 6}})
            };
            world.call(fabric -> product(fabric, shards[fabric.rank()], b))
                    .forEach(System.out::println);
        }
    }

    private static String product(dev.weft.fabric.Fabric fabric, Matrix shard, Matrix b) {
        try (AllGatherMatmul operator =
                AllGatherMatmul.on(fabric)
                        .a(Shards.of(1, 2), DType.FP32)
                        .b(b)
                        .algorithm(Algorithm.RING)
                        .prepare()) {
            Matrix c = operator.call(shard).product();
            StringBuilder text = new StringBuilder();
            for (long row = 0; row < c.rows(); row++) {
                text.append(c.get(row, 0)).append(' ').append(c.get(row, 1)).append(' ');
            }
            return text.toString().strip();
        }
    }
}
