package dev.weft.cli.run;

import dev.weft.cli.data.Operands;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.plan.Shards;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;

/** One rank's B, and all rows of its group's A as its product must have seen them, on its GPU. */
record CudaInputs(DeviceMatrix a, DeviceMatrix b) {

    static CudaInputs upload(ProblemSpec problem, Operands operands, int worldRank, CudaSite site) {
        Shards shards = problem.shards(worldRank);
        DeviceMatrix a = site.allocate(problem.aType(), shards.totalRows(), problem.k());
        DeviceMatrix b = site.put(operands.b(worldRank));
        List<Integer> members = problem.members(worldRank);
        for (int member = 0; member < members.size(); member++) {
            long count = shards.rows(member);
            try (Arena arena = Arena.ofConfined()) {
                Matrix rows = Matrix.allocate(arena, problem.aType(), count, problem.k());
                operands.copyShard(members.get(member), rows);
                a.rows(shards.firstRow(member), count).upload(rows, site.stream());
            }
        }
        return new CudaInputs(a, b);
    }
}
