package dev.weft.bench.gpu;

import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * What every case of the GPU bench is given. The GPU is bound to the command's thread.
 *
 * @param stream on which calls are timed; idle between them
 * @param quick smaller problems and fewer rounds: shows that the bench works, not how fast Weft is
 * @param iterations rounds that count
 * @param rows numbers of the overlap table's rows
 * @param pytorch that takes turns too, where it is installed
 */
record GpuBench(
        Gpu gpu,
        DeviceCheck check,
        GpuStream stream,
        boolean quick,
        int iterations,
        List<Integer> rows,
        Optional<GpuPytorch> pytorch) {

    /** After which a call that hangs has failed: far more than any call takes. */
    static final Duration DEADLINE = Duration.ofSeconds(10);
}
