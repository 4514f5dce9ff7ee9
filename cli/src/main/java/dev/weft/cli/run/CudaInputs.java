package dev.weft.cli.run;

import dev.weft.cli.data.Operands;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

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
        DeviceBuffer aMemory = memory(problem.aType(), problem.m(), problem.k());
        DeviceBuffer bMemory = memory(hostB.dtype(), hostB.rows(), hostB.cols());
        CudaInputs inputs =
                new CudaInputs(
                        aMemory,
                        bMemory,
                        DeviceMatrix.in(aMemory, problem.aType(), problem.m(), problem.k()),
                        DeviceMatrix.in(bMemory, hostB.dtype(), hostB.rows(), hostB.cols()));
        inputs.b.upload(hostB, stream);
        int group = problem.groupOf(worldRank);
        for (int member = 0; member < problem.ranksPerGroup(); member++) {
            long count = problem.shards().rows(member);
            try (Arena arena = Arena.ofConfined()) {
                Matrix rows = Matrix.allocate(arena, problem.aType(), count, problem.k());
                operands.copyShard(problem.rankOf(group, member), rows);
                inputs.a.rows(problem.shards().firstRow(member), count).upload(rows, stream);
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
