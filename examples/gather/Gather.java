import dev.weft.compat.Sb2sb;
import dev.weft.fabric.*;
import dev.weft.tensor.*;
import java.lang.foreign.Arena;
import java.util.Random;

/** Eight ranks gather [256, 512] each along the last dimension, in tiles shared by two programs. */
void main() {
    int ranks = 8;
    ReplicaGroups groups = ReplicaGroups.consecutive(1, ranks);
    try (Arena arena = Arena.ofShared(); World world = World.threads(ranks)) {
        world.run(fabric -> {
            Matrix inp = Matrix.allocate(arena, DType.BF16, 256, 512);
            inp.fill(new Random(fabric.rank())::nextGaussian);
            try (Sb2sb<Matrix> gathered = Sb2sb.allgatherSb2sbTiled(fabric, inp, groups, ranks, 2)) {
                Matrix out = gathered.result();
                Matrix mine = out.block(0, 256, fabric.rank() * 512L, 512);
                if (!mine.bitwiseEquals(inp)) {
                    throw new IllegalStateException("rank " + fabric.rank() + " is not in its place");
                }
                IO.println("rank " + fabric.rank() + ": " + inp.describe() + " -> " + out.describe());
            }
        });
    }
}
