package dev.weft.cuda.exec;

import dev.weft.cuda.CudaAllGatherMatmul;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.ffi.CudaMemory;
import dev.weft.op.View;
import dev.weft.search.Candidate;
import dev.weft.search.Trial;
import java.util.function.Function;

/**
 * A trial of candidates on a GPU, each as a prepared operator.
 *
 * @param fabric null where this rank is alone
 */
public record DeviceTrial(Fabric fabric, Function<Candidate, CudaAllGatherMatmul> operators)
        implements Trial<CudaAllGatherMatmul> {

    /** Products of zeros take less power, and so less time, than any others. */
    private static final byte ORDINARY = 0x3f;

    @Override
    public CudaAllGatherMatmul prepare(Candidate candidate) {
        CudaAllGatherMatmul operator = operators.apply(candidate);
        try (GpuStream stream = GpuStream.create()) {
            for (int slot = 0; slot < 2; slot++) {
                DeviceMatrix shard = operator.nextShard();
                long bytes = shard.rows() * shard.pitchBytes();
                if (bytes > 0) {
                    CudaMemory.fill8Async(shard.address(), ORDINARY, bytes, stream.handle());
                    stream.synchronize();
                }
                if (fabric != null) {
                    fabric.barrier();
                }
                callNs(operator);
            }
            return operator;
        } catch (RuntimeException | Error e) {
            operator.close();
            throw e;
        }
    }

    @Override
    public long callNs(CudaAllGatherMatmul operator) {
        return operator.callInPlace(View.PIPELINED).elapsedNs();
    }

    @Override
    public void close(CudaAllGatherMatmul operator) {
        operator.close();
    }
}
