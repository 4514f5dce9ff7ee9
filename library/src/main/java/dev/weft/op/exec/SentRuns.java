package dev.weft.op.exec;

import dev.weft.fabric.FailureReport.Run;
import dev.weft.fabric.FailureReport.Sent;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;

/** Sums up what a lane has moved: consecutive chunks become one run. */
public final class SentRuns {

    /** What an error tells of a lane that has moved very many pieces. */
    private static final int MOST_RUNS = 256;

    private SentRuns() {}

    /** What {@code done} moves of {@code of} have sent; {@code moves} has each as a run of one. */
    public static Sent of(String lane, int done, int of, IntFunction<Run> moves) {
        List<Run> runs = new ArrayList<>();
        Run latest = null;
        for (int i = 0; i < done; i++) {
            latest = moves.apply(i);
            add(latest, runs);
        }
        return new Sent(lane, done, of, latest, runs);
    }

    /** As the end of a run where it follows on one; the pieces of a chunk are told once. */
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
