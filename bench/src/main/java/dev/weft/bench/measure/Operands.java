package dev.weft.bench.measure;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/** A and B of a product, filled with {@link MadeUpData}. Any thread may read them. */
public record Operands(Arena arena, Matrix a, Matrix b) implements AutoCloseable {

    public static Operands of(Shape shape, DType type) {
        Arena arena = Arena.ofShared();
        Matrix a = Matrix.allocate(arena, type, shape.m(), shape.k());
        Matrix b = Matrix.allocate(arena, type, shape.k(), shape.n());
        MadeUpData.fill(a, MadeUpData.A);
        MadeUpData.fill(b, MadeUpData.B);
        return new Operands(arena, a, b);
    }

    @Override
    public void close() {
        arena.close();
    }
}
