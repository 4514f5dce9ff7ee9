package dev.weft.cli.run;

import dev.weft.cli.data.Operands;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;

/**
 * One rank's B, and all rows of its group's A as its product must have seen them, in device memory
 * that lives until it is closed. One thread uses it.
 */
record CudaInputs(DeviceBuffer aMemory, DeviceBuffer bMemory, DeviceMatrix a, DeviceMatrix b)
        implements AutoCloseable {

    /** On the GPU that is bound. */
    static CudaInputs upload(
            ProblemSpec problem, Operands operands, int worldRank, GpuStream stream) {
        Matrix hostB = operands.b(worldRank);
        Shards shards = problem.shards(worldRank);
        DeviceBuffer aMemory = memory(problem.aType(), shards.totalRows(), problem.k());
        DeviceBuffer bMemory = memory(hostB.dtype(), hostB.rows(), hostB.cols());
        CudaInputs inputs =
                new CudaInputs(
                        aMemory,
                        bMemory,
                        DeviceMatrix.in(aMemory, problem.aType(), shards.totalRows(), problem.k()),
                        DeviceMatrix.in(bMemory, hostB.dtype(), hostB.rows(), hostB.cols()));
        inputs.b.upload(hostB, stream);
        List<Integer> members = problem.members(worldRank);
        for (int member = 0; member < members.size(); member++) {
            long count = shards.rows(member);
            try (Arena arena = Arena.ofConfined()) {
                Matrix rows = Matrix.allocate(arena, problem.aType(), count, problem.k());
                operands.copyShard(members.get(member), rows);
                inputs.a.rows(shards.firstRow(member), count).upload(rows, stream);
            }
        }
        return inputs;
    }

    private static DeviceBuffer memory(DType type, long rows, long cols) {
        return DeviceBuffer.allocate(DeviceMatrix.alignedBytes(type, rows, cols));
    }

    @Override
    public void close() {
        aMemory.close();
        bMemory.close();
    }
}
