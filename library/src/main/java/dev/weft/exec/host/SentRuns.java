package dev.weft.exec.host;

import dev.weft.fabric.FailureReport.Run;
import dev.weft.fabric.FailureReport.Sent;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;

/** Summarizes what a lane has moved: consecutive chunks become one run. */
public final class SentRuns {

    /** The most runs that an error lists for a lane. */
    private static final int MOST_RUNS = 256;

    private SentRuns() {}

    /**
     * What the first {@code done} of {@code of} moves have sent; {@code moves} gives each as a run
     * of one.
     */
    public static Sent of(String lane, int done, int of, IntFunction<Run> moves) {
        List<Run> runs = new ArrayList<>();
        Run latest = null;
        for (int i = 0; i < done; i++) {
            latest = moves.apply(i);
            add(latest, runs);
        }
        return new Sent(lane, done, of, latest, runs);
    }

    /** Extends the last run if the chunk follows it; the pieces of a chunk count once. */
    private static void add(Run chunk, List<Run> runs) {
        for (int r = runs.size() - 1; r >= 0; r--) {
            Run run = runs.get(r);
            boolean follows = run.last() + 1 == chunk.first() || run.last() == chunk.first();
            if (run.what().equals(chunk.what())
                    && run.from() == chunk.from()
                    && run.to() == chunk.to()
                    && run.source() == chunk.source()
                    && follows) {
                runs.set(
                        r,
                        new Run(
                                run.what(),
                                run.from(),
                                run.to(),
                                run.source(),
                                run.first(),
                                chunk.last()));
                return;
            }
        }
        if (runs.size() < MOST_RUNS) {
            runs.add(chunk);
        }
    }
}
