package dev.weft.compat;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.op.Timeline;
import dev.weft.tensor.DType;
import java.util.Optional;

/** A product on the caller's stream, the gather that it waits for, and their memory. */
final class HelionDeviceResult implements HelionResult<DeviceMatrix> {

    private final HelionDeviceShared shared;
    private final DeviceMatrix aOut;
    private final DeviceMatrix c;
    private final DeviceProgress progress;
    private final ProgressMatmul product;

    /** Null if the caller supplied it. */
    private DeviceBuffer aMemory;

    private DeviceBuffer cMemory;
    private DeviceBuffer words;
    private boolean gathers;
    private boolean closed;

    /**
     * Reserves what the caller does not supply; nothing is queued yet. {@link ProgressMatmul}
     * refuses what does not fit.
     *
     * @param given gathered A; null, like {@code givenC} and {@code givenProgress}, to reserve
     *     memory for it
     */
    HelionDeviceResult(
            HelionDeviceShared shared,
            DeviceMatrix b,
            boolean bTransposed,
            DeviceMatrix given,
            DeviceMatrix givenC,
            DeviceProgress givenProgress,
            int splitsPerRank,
            int rank,
            Helion.Config config) {
        this.shared = shared;
        shared.gpu().bind();
        int ranks = shared.group().size();
        long m = Math.multiplyExact(shared.rows(), (long) ranks);
        long n = bTransposed ? b.rows() : b.cols();
        DType type = DType.promote(shared.dtype(), b.dtype());
        if (givenC != null) {
            HelionChecks.product(Place.on(shared.gpu()).size(givenC), m, n, type);
        }
        try {
            if (given == null) {
                aMemory = take(m * shared.cols() * shared.dtype().bytes());
            }
            if (givenC == null) {
                cMemory = take(m * n * type.bytes());
            }
            if (givenProgress == null) {
                words = take((long) Integer.BYTES * ranks * splitsPerRank);
            }
            this.aOut =
                    given == null ? contiguous(aMemory, shared.dtype(), m, shared.cols()) : given;
            this.c = givenC == null ? contiguous(cMemory, type, m, n) : givenC;
            this.progress =
                    givenProgress == null
                            ? new DeviceProgress(words.address(), ranks * splitsPerRank)
                            : givenProgress;
            this.product =
                    shared.product(
                            new HelionProduct<>(
                                    aOut,
                                    b,
                                    bTransposed,
                                    c,
                                    progress,
                                    splitsPerRank,
                                    rank,
                                    config));
        } catch (RuntimeException | Error e) {
            giveBack();
            throw e;
        }
    }

    private DeviceBuffer take(long bytes) {
        return shared.take(Math.max(1, bytes));
    }

    private static DeviceMatrix contiguous(DeviceBuffer memory, DType type, long rows, long cols) {
        return new DeviceMatrix(memory.address(), type, rows, cols, cols);
    }

    /** Queues gather and product; later work on {@code stream} sees all of gathered A. */
    HelionDeviceResult gatherAndLaunch(int splitsPerRank, GpuStream stream) {
        gathers = true;
        return queued(
                stream,
                () -> {
                    progress.reset(stream);
                    shared.gather().start(aOut, progress, splitsPerRank, stream);
                    product.launch(stream);
                    shared.gather().join(stream);
                });
    }

    /** Queues only the product. */
    HelionDeviceResult launch(GpuStream stream) {
        return queued(stream, () -> product.launch(stream));
    }

    private HelionDeviceResult queued(GpuStream stream, Runnable work) {
        try {
            shared.begin(stream);
            work.run();
            shared.end(stream);
            return this;
        } catch (RuntimeException | Error e) {
            close();
            throw e;
        }
    }

    @Override
    public DeviceMatrix aOut() {
        return aOut;
    }

    @Override
    public DeviceMatrix c() {
        return c;
    }

    @Override
    public Optional<Timeline> timeline() {
        return Optional.empty();
    }

    @Override
    public void await() {
        try {
            product.await();
        } catch (RuntimeException e) {
            shared.group().fail(e);
            throw e;
        }
        if (gathers) {
            shared.gather().await();
        }
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            giveBack();
        }
    }

    private void giveBack() {
        shared.give(aMemory);
        shared.give(cMemory);
        shared.give(words);
    }
}
