package dev.weft.cuda.op;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.ffi.CudaMemory;
import dev.weft.plan.Chunks;
import java.lang.foreign.ValueLayout;

/**
 * Reads an operator's flags while a call is under way. All that it needs is there before: nothing
 * is allocated while grids wait.
 */
final class Flags implements AutoCloseable {

    private final CudaAllGatherMatmul op;
    private final Chunks chunks;
    private final PinnedBuffer copy;
    private final GpuStream stream = GpuStream.urgent();

    Flags(CudaAllGatherMatmul op) {
        this.op = op;
        this.chunks = op.plan().chunks();
        this.copy = PinnedBuffer.allocate(4L * op.buffers.flagCount());
    }

    /** Whether a chunk has come in a call, which is not cut into pieces. */
    boolean haveCome(int source, int chunk, int call) {
        long bytes = 4L * op.buffers.flagCount();
        CudaMemory.copyAsync(copy.address(), op.buffers.flags(), bytes, stream.handle());
        stream.synchronize();
        int flag = chunks.tag(source, chunk);
        return copy.segment().get(ValueLayout.JAVA_INT, 4L * flag) - call >= 0;
    }

    @Override
    public void close() {
        stream.close();
        copy.close();
    }
}
