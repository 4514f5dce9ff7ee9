package dev.weft.compat;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.ProgressGather;
import java.util.Optional;

/** A gather under way on the backend stream, which closing leaves alone. One thread at a time. */
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
