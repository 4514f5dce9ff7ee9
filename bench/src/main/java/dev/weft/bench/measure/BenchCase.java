package dev.weft.bench.measure;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** One of the bench's questions. Runs alone on the machine, on the command's thread. */
public interface BenchCase {

    /** The word for it in the option {@code --only} and in {@link BenchRow#item}. */
    String item();

    /**
     * Measures and hands over rows one by one; says through the sink what it skips and why.
     *
     * @throws SkippedException where all the rest is skipped
     */
    void run(Settings settings, Sink sink)
            throws SkippedException, IOException, InterruptedException;

    /**
     * What every case is told.
     *
     * @param quick smaller problems and fewer rounds: shows that the bench works, not how fast Weft
     *     is
     * @param cores cores to use at most
     * @param folder an empty folder of this run's own, removed afterwards
     */
    record Settings(boolean quick, int cores, Path folder) {

        /** What each of some things takes that take turns. */
        public Interleaved.Outcome measure(List<Interleaved.Turn> turns)
                throws IOException, InterruptedException {
            return new Interleaved(Interleaved.Effort.of(quick)).measure(turns);
        }
    }

    /** Takes what a case finds: prints it as it comes and keeps it for the record. */
    interface Sink {

        void row(BenchRow row);

        /** A case or a peer that cannot be measured here, with the reason. */
        void skipped(String item, String reason);

        /** A figure of the whole machine that rows refer to, such as the peak of one core. */
        void machine(String name, double value);
    }
}
