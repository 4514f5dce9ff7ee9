package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Inputs of a call that are where the call before left its results, or that one thread owns. */
class AliasesTest {

    private static final int ROWS = 40;
    private static final int WIDTH = 192;

    private static Matrix random(Arena arena, long stream) {
        Matrix matrix = Matrix.allocate(arena, DType.FP32, stream == 0 ? ROWS : WIDTH, WIDTH);
        new NormalData(5, stream).fill(matrix);
        return matrix;
    }

    private static Operator<Matrix> prepare(
            Fabric fabric, boolean sums, Matrix b, Epilogue epilogue) {
        Shards rows = Shards.even(ROWS, 1);
        return sums
                ? MatmulReduceScatter.on(fabric)
                        .a(rows, Shards.even(WIDTH, 1), DType.FP32)
                        .b(b)
                        .computeWorkers(2)
                        .epilogue(epilogue)
                        .prepare()
                : AllGatherMatmul.on(fabric)
                        .a(rows, DType.FP32)
                        .b(b)
                        .computeWorkers(2)
                        .epilogue(epilogue)
                        .prepare();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theResultOfTheCallBeforeIsTheNextA(boolean sums) {
        try (World world = World.threads(1);
                Arena arena = Arena.ofShared()) {
            Matrix a = random(arena, 0);
            Matrix b = random(arena, 1);
            world.run(
                    fabric -> {
                        try (var operator = prepare(fabric, sums, b, Epilogue.none());
                                var other = prepare(fabric, sums, b, Epilogue.none())) {
                            Matrix once = Matrix.allocate(arena, DType.FP32, ROWS, WIDTH);
                            once.copyFrom(operator.call(a).product());
                            float[] expected = other.call(once).product().toArray();
                            for (int i = 0; i < 20; i++) {
                                Matrix result = operator.call(a).product();
                                assertArrayEquals(
                                        expected, operator.call(result).product().toArray());
                            }
                        }
                    });
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theResultOfTheCallBeforeIsTheResidual(boolean sums) {
        try (World world = World.threads(1);
                Arena arena = Arena.ofShared()) {
            Matrix a = random(arena, 0);
            Matrix b = random(arena, 1);
            Matrix[] residual = {Matrix.allocate(arena, DType.FP32, ROWS, WIDTH)};
            Epilogue epilogue = Epilogue.none().residual(() -> residual[0]);
            world.run(
                    fabric -> {
                        try (var operator = prepare(fabric, sums, b, epilogue)) {
                            Matrix once = operator.call(a).product();
                            float[] expected = once.toArray();
                            for (int i = 0; i < expected.length; i++) {
                                expected[i] += expected[i];
                            }
                            residual[0] = once;
                            assertArrayEquals(expected, operator.call(a).product().toArray());
                        }
                    });
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void memoryOfTheCallersThreadIsCopied(boolean sums) {
        try (World world = World.threads(1);
                Arena arena = Arena.ofShared()) {
            Matrix b = random(arena, 1);
            world.run(
                    fabric -> {
                        try (Arena own = Arena.ofConfined();
                                var operator = prepare(fabric, sums, b, Epilogue.none())) {
                            float[] expected = operator.call(random(arena, 0)).product().toArray();
                            float[] found = operator.call(random(own, 0)).product().toArray();
                            assertArrayEquals(expected, found);
                            assertTrue(expected.length == ROWS * WIDTH);
                        }
                    });
        }
    }
}
