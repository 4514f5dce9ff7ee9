package dev.weft.compat;

import dev.weft.cuda.GpuStream;
import java.util.Optional;

/** A running gather on the backend stream, which it does not close. For one thread at a time. */
record HelionDeviceGather(ProgressGather copies) implements HelionGather {

    @Override
    public Optional<GpuStream> stream() {
        return Optional.of(copies.stream());
    }

    @Override
    public void await() {
        copies.await();
    }

    @Override
    public void close() {}
}
