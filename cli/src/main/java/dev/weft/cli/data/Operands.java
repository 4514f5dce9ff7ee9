package dev.weft.cli.data;

import dev.weft.cli.options.ProblemSpec;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/** Where a rank finds its inputs; the matrices live as long as the arena they were opened with. */
public interface Operands {

    /** The rank's rows of its group's A. */
    Matrix shard(int worldRank);

    /** The rank's B: all of it, or its columns; [N, K] where B is stored transposed. */
    Matrix b(int worldRank);

    /** Copies the rank's rows of its group's A, without keeping them. */
    default void copyShard(int worldRank, Matrix target) {
        target.copyFrom(shard(worldRank));
    }

    /** A copy of all rows of one group's A. */
    static Matrix gatheredA(Operands operands, ProblemSpec spec, int group, Arena arena) {
        Matrix all = Matrix.allocate(arena, spec.aType(), spec.m(), spec.k());
        for (int member = 0; member < spec.ranksPerGroup(); member++) {
            Matrix rows = all.rows(spec.shards().firstRow(member), spec.shards().rows(member));
            operands.copyShard(spec.rankOf(group, member), rows);
        }
        return all;
    }
}
