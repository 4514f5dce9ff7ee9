package dev.weft.bench;

import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.Locale;

/**
 * One of the {@link RandomProblems}. Immutable; any thread may call it.
 *
 * @param index its number among them, by which ranks in other processes find it
 * @param rate of the links between the hosts, as the lab takes it; empty outside the lab
 * @param shards of A, one per rank
 * @param split how even the shards are
 * @param inner K of the product
 * @param columns N of the product
 * @param dtype of A and B
 * @param keepGathered whether gathered A is kept
 */
record RandomProblem(
        int index,
        Launcher launcher,
        String rate,
        Shards shards,
        Split split,
        long inner,
        long columns,
        DType dtype,
        boolean keepGathered) {

    /** What the ranks are. */
    public enum Launcher {
        THREADS,
        PROCESSES,
        LAB;

        String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** How A lies on the ranks. */
    enum Split {
        EVEN,
        UNEVEN,
        ONE_EMPTY;

        String label() {
            return name().toLowerCase(Locale.ROOT).replace('_', ' ');
        }
    }

    int ranks() {
        return shards.ranks();
    }

    int ranksPerHost() {
        return launcher == Launcher.LAB ? ranks() / RandomProblems.LAB_HOSTS : ranks();
    }

    String describe() {
        return "#"
                + index
                + " "
                + launcher.label()
                + " "
                + (launcher == Launcher.LAB
                        ? RandomProblems.LAB_HOSTS + "x" + ranksPerHost() + " " + rate
                        : ranks())
                + ": "
                + shards.totalRows()
                + " x "
                + inner
                + " x "
                + columns
                + " "
                + dtype.label()
                + " "
                + split.label()
                + (keepGathered ? " kept" : "");
    }
}
