package dev.weft.cli.data;

import dev.weft.cli.options.ProblemSpec;
import dev.weft.plan.Shards;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;

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

    /** A copy of all rows of the A of the rank's group. */
    static Matrix gatheredA(Operands operands, ProblemSpec spec, int worldRank, Arena arena) {
        Shards shards = spec.shards(worldRank);
        Matrix all = Matrix.allocate(arena, spec.aType(), shards.totalRows(), spec.k());
        List<Integer> members = spec.members(worldRank);
        for (int member = 0; member < members.size(); member++) {
            Matrix rows = all.rows(shards.firstRow(member), shards.rows(member));
            operands.copyShard(members.get(member), rows);
        }
        return all;
    }
}
