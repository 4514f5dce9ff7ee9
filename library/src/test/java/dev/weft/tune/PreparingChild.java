package dev.weft.tune;

import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/** Prepares an operator with auto, as a program does that knows nothing of models. */
final class PreparingChild {

    private PreparingChild() {}

    public static void main(String[] args) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(2)) {
            Matrix b = Matrix.allocate(arena, DType.FP32, 64, 16);
            int candidates =
                    world.call(
                                    fabric -> {
                                        try (AllGatherMatmul operator =
                                                AllGatherMatmul.on(fabric)
                                                        .a(Shards.of(40, 24), DType.FP32)
                                                        .b(b)
                                                        .engine("scalar")
                                                        .prepare()) {
                                            return operator.candidates().size();
                                        }
                                    })
                            .getFirst();
            System.out.println("chosen of " + candidates);
        }
    }
}
