import dev.weft.compat.*;
import dev.weft.fabric.World;
import dev.weft.tensor.*;
import java.lang.foreign.Arena;
import java.util.Random;

/**
 * One rank; as many processes of it as wanted gather and multiply together:
 *
 * <pre>
 * ./weft launch -n 4 -- ./weft java examples/launch/Ranks.java
 * </pre>
 */
void main() {
    try (Arena arena = Arena.ofShared(); World world = World.joined()) {
        Matrix b = Matrix.allocate(arena, DType.FP32, 32, 8);
        b.fill(new Random(100)::nextGaussian);
        world.run(fabric -> {
            try (HelionShared<Matrix> a = Helion.empty(fabric, 16, 32, DType.FP32)) {
                a.local().fill(new Random(fabric.rank())::nextGaussian);
                Matrix c = Helion.allGatherMatmul(fabric, a, b).c();
                IO.println("rank " + System.getenv("RANK") + " of " + System.getenv("WORLD_SIZE")
                        + ": " + c.describe() + ", last element " + c.get(c.rows() - 1, 7));
            }
        });
    }
}
