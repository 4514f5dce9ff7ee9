package dev.weft.cuda.op;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.cuda.exec.CopyStreams;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.KernelCache;
import dev.weft.cuda.kernel.KernelKey;
import dev.weft.cuda.kernel.KernelVariants;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.cuda.kernel.RowPlaces;
import dev.weft.ffi.CudaModules;
import dev.weft.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.IntSupplier;

/** Holds streams back, by a kernel of one block, until the host lets them go; 20 s at most. */
final class Hold implements AutoCloseable {

    private static final long LONGEST_NS = 20_000_000_000L;

    private final long function;
    private final PinnedBuffer words = PinnedBuffer.allocate(16);
    private final Arena arena = Arena.ofShared();
    private final MemorySegment pointers;

    /** Loads the kernel: nothing may be held meanwhile. */
    Hold(Gpu gpu) {
        KernelKey key =
                KernelVariants.check(
                        GatedKernel.operands(DType.FP16, DType.FP16, false), gpu.architecture());
        this.function = KernelCache.function(gpu, key, "spin_until");
        MemorySegment arguments = arena.allocate(32, 8);
        arguments.set(JAVA_LONG, 0, words.address());
        arguments.set(JAVA_INT, 8, 1);
        arguments.set(JAVA_LONG, 16, LONGEST_NS);
        arguments.set(JAVA_LONG, 24, words.address() + 8);
        this.pointers = arena.allocate(32, 8);
        for (int i = 0; i < 4; i++) {
            pointers.setAtIndex(JAVA_LONG, i, arguments.address() + 8L * i);
        }
        // Once, so that no launch loads anything while grids wait.
        try (GpuStream stream = GpuStream.create()) {
            release();
            queue(stream);
            stream.synchronize();
            words.segment().fill((byte) 0);
        }
    }

    /** What is queued on the stream from now on waits. Any thread. */
    void queue(GpuStream stream) {
        CudaModules.launch(function, 1, 1, 32, 0, stream.handle(), pointers, 1);
    }

    /** Copies of one source's rows wait, and with them all that follows on their lanes. */
    CopyStreams.Hook beforeCopiesOf(int source) {
        return new CopyStreams.Hook() {
            @Override
            public void beforeCopy(Copy copy, GpuStream lane) {
                if (copy.source() == source) {
                    queue(lane);
                }
            }
        };
    }

    /** The counter behind a lane's copy of this flag waits, and all that follows. */
    CopyStreams.Hook beforeCounterOf(IntSupplier flag) {
        return new CopyStreams.Hook() {
            @Override
            public void beforeCounter(Copy copy, GpuStream lane) {
                if (copy.flag() == flag.getAsInt()) {
                    queue(lane);
                }
            }
        };
    }

    /** A product whose every launch waits first. */
    DeviceProduct before(DeviceProduct product) {
        return new DeviceProduct() {
            @Override
            public int blocks() {
                return product.blocks();
            }

            @Override
            public void setRows(RowPlaces.Call call, GpuStream stream) {
                product.setRows(call, stream);
            }

            @Override
            public void launch(int place, int epoch, GpuStream stream) {
                queue(stream);
                product.launch(place, epoch, stream);
            }

            @Override
            public void close() {
                product.close();
            }
        };
    }

    void release() {
        JAVA_INT.varHandle().setVolatile(words.segment(), 0L, 1);
    }

    /** Whether some stream was let go by the time alone. */
    boolean ranOut() {
        return (int) JAVA_INT.varHandle().getVolatile(words.segment(), 8L) == 2;
    }

    @Override
    public void close() {
        words.close();
        arena.close();
    }
}
