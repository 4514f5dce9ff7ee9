package dev.weft.cli.run;

import dev.weft.cli.data.Operands;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.plan.Shards;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;

/**
 * One rank's B, and all rows of its group's A that its product must have seen, on its GPU.
 *
 * @param b null if it has scales, which an operator reads from the host
 */
record CudaInputs(DeviceMatrix a, DeviceMatrix b) {

    static CudaInputs upload(ProblemSpec problem, Operands operands, int worldRank, CudaSite site) {
        if (problem.fp8() != null) {
            try (Arena arena = Arena.ofConfined()) {
                return new CudaInputs(site.put(operands.allMoved(problem, worldRank, arena)), null);
            }
        }
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
