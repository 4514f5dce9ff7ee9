package dev.weft.compat;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.tensor.DType;
import dev.weft.trace.Timeline;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** A product on the caller's stream, the gather that it waits for, and their memory. */
final class HelionDeviceResult implements HelionResult<DeviceMatrix> {

    private final HelionDeviceShared shared;
    private final DeviceMatrix aOut;
    private final DeviceMatrix c;
    private final DeviceProgress progress;
    private final ProgressMatmul product;
    private final int splits;

    /** What the caller did not supply. */
    private final List<DeviceBuffer> own = new ArrayList<>();

    private boolean gathers;
    private boolean closed;

    /**
     * Reserves what the caller does not supply; nothing is queued yet. {@link ProgressMatmul}
     * refuses what does not fit.
     *
     * @param wanted null for gathered A, the product or the progress, to reserve memory for it
     */
    HelionDeviceResult(
            HelionDeviceShared shared, HelionProduct<DeviceMatrix, DeviceProgress> wanted) {
        this.shared = shared;
        shared.gpu().bind();
        DeviceMatrix b = wanted.b();
        int ranks = shared.group().size();
        int words = ranks * wanted.splitsPerRank();
        long m = Math.multiplyExact(shared.rows(), (long) ranks);
        long n = wanted.bTransposed() ? b.rows() : b.cols();
        DType type = DType.promote(shared.dtype(), b.dtype());
        if (wanted.c() != null) {
            HelionChecks.product(shared.place().size(wanted.c()), m, n, type);
        }
        try {
            this.aOut = wanted.a() == null ? take(shared.dtype(), m, shared.cols()) : wanted.a();
            this.c = wanted.c() == null ? take(type, m, n) : wanted.c();
            this.progress =
                    wanted.progress() == null
                            ? new DeviceProgress(take((long) Integer.BYTES * words), words)
                            : wanted.progress();
            this.product =
                    shared.product(
                            new HelionProduct<>(
                                    aOut,
                                    b,
                                    wanted.bTransposed(),
                                    c,
                                    progress,
                                    wanted.splitsPerRank(),
                                    wanted.rank(),
                                    wanted.config()));
        } catch (RuntimeException | Error e) {
            giveBack();
            throw e;
        }
        this.splits = wanted.splitsPerRank();
    }

    private DeviceMatrix take(DType type, long rows, long cols) {
        return new DeviceMatrix(take(rows * cols * type.bytes()), type, rows, cols, cols);
    }

    private long take(long bytes) {
        own.add(shared.take(Math.max(1, bytes)));
        return own.getLast().address();
    }

    /** Queues gather and product; later work on {@code stream} sees all of gathered A. */
    HelionDeviceResult gatherAndLaunch(GpuStream stream) {
        gathers = true;
        return queued(
                stream,
                () -> {
                    progress.reset(stream);
                    shared.gather().start(aOut, progress, splits, stream);
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
        own.forEach(shared::give);
    }
}
