package dev.weft.bench;

import java.io.IOException;

/** One of the bench's questions. Runs alone on the machine, on the command's thread. */
interface BenchCase {

    /** The word for it in the option {@code --only} and in {@link BenchRow#item}. */
    String item();

    /** Measures and hands over rows one by one; says through the sink what it skips and why. */
    void run(BenchSettings settings, BenchSink sink) throws IOException, InterruptedException;
}
