package dev.weft.cli.data;

import dev.weft.cli.options.ProblemSpec;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/** Where a rank finds its inputs; its matrices are valid as long as their arena. */
public interface Operands {

    /** The rank's rows, or columns, of its group's A. */
    Matrix shard(int worldRank);

    /** The rank's B: all of it, its columns or its rows; [N, K] if B is stored transposed. */
    Matrix b(int worldRank);

    /** The type of {@link #shard}. */
    default DType typeOfA(ProblemSpec spec) {
        return spec.aType();
    }

    /** The type of {@link #b}. */
    default DType typeOfB(ProblemSpec spec) {
        return spec.bType();
    }

    /** The rank's shard as it travels. */
    default Matrix moved(int worldRank) {
        return shard(worldRank);
    }

    /** All rows of the rank's group as they travel. */
    default Matrix allMoved(ProblemSpec spec, int worldRank, Arena arena) {
        return gatheredA(this, spec, worldRank, arena);
    }

    /** Copies the rank's part of its group's A, without keeping it. */
    default void copyShard(int worldRank, Matrix target) {
        target.copyFrom(shard(worldRank));
    }

    /** A copy of the whole A of the rank's group. */
    static Matrix gatheredA(Operands operands, ProblemSpec spec, int worldRank, Arena arena) {
        long rows = spec.shards(worldRank).totalRows();
        Matrix all = Matrix.allocate(arena, operands.typeOfA(spec), rows, spec.k());
        for (int of : spec.members(worldRank)) {
            operands.copyShard(of, spec.aOfGroup(of).of(all));
        }
        return all;
    }

    /** The B of the rank's product: its own, or a copy of all rows if each rank has some. */
    static Matrix wholeB(Operands operands, ProblemSpec spec, int worldRank, Arena arena) {
        if (spec.gathers()) {
            return operands.b(worldRank);
        }
        boolean transposed = spec.transposeB();
        Matrix all =
                Matrix.allocate(
                        arena,
                        operands.typeOfB(spec),
                        transposed ? spec.n() : spec.k(),
                        transposed ? spec.k() : spec.n());
        for (int of : spec.members(worldRank)) {
            spec.b(of).of(all).copyFrom(operands.b(of));
        }
        return all;
    }
}
