package dev.weft.cli.data;

import dev.weft.cli.options.ProblemSpec;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;

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

    /** Copies the rank's part of its group's A, without keeping it. */
    default void copyShard(int worldRank, Matrix target) {
        target.copyFrom(shard(worldRank));
    }

    /** A copy of the whole A of the rank's group. */
    static Matrix gatheredA(Operands operands, ProblemSpec spec, int worldRank, Arena arena) {
        Shards shards = spec.shards(worldRank);
        Matrix all = Matrix.allocate(arena, operands.typeOfA(spec), shards.totalRows(), spec.k());
        List<Integer> members = spec.members(worldRank);
        for (int member = 0; member < members.size(); member++) {
            int of = members.get(member);
            Matrix part =
                    spec.sums() == null
                            ? all.rows(shards.firstRow(member), shards.rows(member))
                            : all.block(0, all.rows(), spec.firstInner(of), spec.inners(of));
            operands.copyShard(of, part);
        }
        return all;
    }

    /** The B of the rank's product: its own, or a copy of all rows if each rank has some. */
    static Matrix wholeB(Operands operands, ProblemSpec spec, int worldRank, Arena arena) {
        if (spec.sums() == null) {
            return operands.b(worldRank);
        }
        boolean transposed = spec.transposeB();
        Matrix all =
                Matrix.allocate(
                        arena,
                        spec.bType(),
                        transposed ? spec.n() : spec.k(),
                        transposed ? spec.k() : spec.n());
        for (int of : spec.members(worldRank)) {
            long first = spec.firstInner(of);
            long count = spec.inners(of);
            Matrix part =
                    transposed ? all.block(0, spec.n(), first, count) : all.rows(first, count);
            part.copyFrom(operands.b(of));
        }
        return all;
    }
}
