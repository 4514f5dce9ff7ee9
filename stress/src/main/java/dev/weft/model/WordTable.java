package dev.weft.model;

import dev.weft.model.Word.Kind;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Storage;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/** All words that ranks await, with the values that the call before the first has left in them. */
final class WordTable {

    private final OwnedWord[] starts;
    private final OwnedWord[] rounds;
    private final OwnedWord[] finishes;

    /** By destination and tag. */
    private final OwnedWord[][] flags;

    /** By destination, initiator and lane. */
    private final Map<String, OwnedWord> counters = new HashMap<>();

    private final ReleaseWord[] releases;

    /** By kind, rank and tag, made when asked for. */
    private final Map<String, OwnedWord> sums = new HashMap<>();

    private final int before;

    WordTable(Setting setting, int threads, int[] callers) {
        int ranks = setting.ranks();
        this.before = setting.firstCall() - 1;
        starts = new OwnedWord[ranks];
        rounds = new OwnedWord[ranks];
        finishes = new OwnedWord[ranks];
        flags = new OwnedWord[ranks][setting.chunks().total()];
        releases = new ReleaseWord[ranks];
        for (int r = 0; r < ranks; r++) {
            starts[r] = new OwnedWord(Kind.START, "start[" + r + "]", before, 1);
            rounds[r] = new OwnedWord(Kind.LOCAL, "team[" + r + "]", before, 1);
            finishes[r] = new OwnedWord(Kind.LOCAL, "finish[" + r + "]", before, 1);
            for (int tag = 0; tag < flags[r].length; tag++) {
                String name = "flag[" + r + "][" + tag + "]";
                flags[r][tag] = new OwnedWord(Kind.FLAG, name, before, 1);
            }
            if (setting.keeps(Storage.PING_PONG)) {
                String name = "release[" + r + "]";
                int first = setting.firstCall();
                releases[r] = new ReleaseWord(name, first, ranks - 1, threads, callers[r]);
            }
            for (Lane lane : setting.plans().get(r).lanes()) {
                for (int to = 0; to < ranks; to++) {
                    addCounter(lane, r, to);
                }
            }
        }
    }

    private void addCounter(Lane lane, int initiator, int to) {
        int perCall = (int) lane.transfers().stream().filter(t -> t.to() == to).count();
        String key = key(to, initiator, lane.index());
        counters.put(
                key, new OwnedWord(Kind.COUNTER, "counter" + key, before * perCall, 2 * perCall));
    }

    private static String key(int to, int initiator, int lane) {
        return "[" + to + "][" + initiator + "." + lane + "]";
    }

    OwnedWord start(int rank) {
        return starts[rank];
    }

    /** Raised when a rank's workers are set to a call. */
    OwnedWord round(int rank) {
        return rounds[rank];
    }

    /** A word that the protocol does without: raised when a rank's workers have ended a call. */
    OwnedWord finish(int rank) {
        return finishes[rank];
    }

    OwnedWord flag(int at, int tag) {
        return flags[at][tag];
    }

    OwnedWord counter(int to, int initiator, int lane) {
        return counters.get(key(to, initiator, lane));
    }

    /**
     * What tells that a chunk has come to a place, or is multiplied or summed there.
     *
     * @param rank whose place it is; the sender where it sends sums of its own
     */
    OwnedWord sums(SumCells.Kind kind, int rank, int tag) {
        String name = kind.name().toLowerCase(Locale.ROOT) + "[" + rank + "][" + tag + "]";
        return sums.computeIfAbsent(name, n -> new OwnedWord(Kind.FLAG, n, before, 1));
    }

    ReleaseWord release(int rank) {
        return releases[rank];
    }
}
