package dev.weft.bench;

import java.util.function.Consumer;

/** One of the GPU bench's questions. Runs alone on the GPU, on the command's thread. */
interface GpuCase {

    /** The word for it in the option {@code --only} and in {@link GpuRow#item}. */
    String item();

    /** Measures, verifies and hands over rows one by one. */
    void run(GpuBench bench, Consumer<GpuRow> sink);
}
