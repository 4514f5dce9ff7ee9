package dev.weft.cli.launch;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.console.RunFailedException;
import dev.weft.fabric.memory.Renewals;
import dev.weft.process.WaitTime;
import java.io.IOException;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.Arrays;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;

/**
 * Starts ranks again that have failed, and has all ranks meet in a new world once each of them is
 * ready for it. Both happen a limited number of times, and each time is told in a line. Used by one
 * thread.
 */
final class Restarts {

    private final RankProcesses processes;
    private final Renewals worlds;
    private final int most;
    private final Duration mostToRenew;
    private final PrintWriter err;
    private final LongSupplier clockNs;

    /** By rank: whether its process has been in no world yet. */
    private final boolean[] isNew;

    /** By rank: how long its process has kept others waiting that are ready for the next world. */
    private final long[] unreadyNs;

    private long lookedNs;
    private int restarts;
    private int restartsBeforeWorld;
    private int renewals;

    /** Why no world comes any more, or null. */
    private String over;

    /**
     * @param most how many ranks are started again at most
     * @param deadline of the ranks; they have this time and some more to renew
     * @param clockNs as {@link System#nanoTime}
     */
    Restarts(
            RankProcesses processes,
            Renewals worlds,
            int most,
            Duration deadline,
            PrintWriter err,
            LongSupplier clockNs) {
        this.processes = processes;
        this.worlds = worlds;
        this.most = most;
        this.mostToRenew = deadline.plus(Renewals.GRACE);
        this.err = err;
        this.clockNs = clockNs;
        this.lookedNs = clockNs.getAsLong();
        this.unreadyNs = new long[worlds.ranks()];
        this.isNew = new boolean[worlds.ranks()];
        Arrays.fill(isNew, true);
    }

    private IntStream ranks() {
        return IntStream.range(0, unreadyNs.length);
    }

    private boolean isReady(int rank) {
        return processes.isAlive(rank) && worlds.isReady(rank);
    }

    /** Does what is due; returns whether ranks that have failed are not started again. */
    boolean areOver() {
        long now = clockNs.getAsLong();
        long stepNs = WaitTime.counted(lookedNs, now);
        lookedNs = now;
        if (over == null && processes.isEnding()) {
            over = "the command was told to end";
        }
        try {
            for (int rank = 0; rank < unreadyNs.length && over == null; rank++) {
                if (processes.hasFailed(rank)) {
                    restart(rank);
                }
            }
            if (over == null && ranks().anyMatch(this::isReady)) {
                meet(stepNs);
            }
            for (int rank = 0; rank < unreadyNs.length && over != null; rank++) {
                if (isReady(rank)) {
                    worlds.refuse(rank, over);
                }
            }
        } catch (IOException e) {
            if (!processes.isEnding()) {
                throw new RunFailedException("cannot start ranks again: " + ErrorMessage.of(e));
            }
            // The ranks are being ended, and what they print meanwhile is still to be read.
        }
        return over != null;
    }

    private void restart(int rank) throws IOException {
        String end = "rank " + rank + " " + processes.end(rank);
        if (restarts == most) {
            over = end + ", and all restarts are used up (--restarts " + most + ")";
            return;
        }
        worlds.forget(rank);
        unreadyNs[rank] = 0;
        isNew[rank] = true;
        if (!processes.restart(rank)) {
            // Told to end a moment ago, which is seen the next time.
            return;
        }
        restarts++;
        ErrorMessage.print(err, end + ": restart " + restarts + " of " + most);
    }

    /** Some ranks are ready for the next world. */
    private void meet(long stepNs) throws IOException {
        int[] unready = ranks().filter(rank -> !isReady(rank)).toArray();
        for (int rank : unready) {
            if (!processes.isAlive(rank) && !processes.hasFailed(rank)) {
                over = "rank " + rank + " has already ended";
                return;
            }
        }
        if (unready.length == 0) {
            begin();
            return;
        }
        worlds.showWaiting();
        boolean allStopped = IntStream.of(unready).allMatch(processes::isStopped);
        for (int rank : unready) {
            unreadyNs[rank] += stepNs;
            if (processes.isAlive(rank) && (allStopped || unreadyNs[rank] > mostNs(rank))) {
                processes.kill(
                        rank, processes.isStopped(rank) ? "is stopped" : "does not get ready");
            }
        }
    }

    /** A new process may have much to read before it joins. */
    private long mostNs(int rank) {
        boolean longer = isNew[rank] && mostToRenew.compareTo(Renewals.START) < 0;
        return WaitTime.nanoseconds(longer ? Renewals.START : mostToRenew);
    }

    private void begin() throws IOException {
        if (worlds.count() > 0 && restarts == restartsBeforeWorld) {
            if (renewals == most) {
                over = "they have done so %s times without a restart".formatted(most);
                return;
            }
            renewals++;
            ErrorMessage.print(
                    err,
                    "all ranks meet again without a restart: renewal %s of %s"
                            .formatted(renewals, most));
        }
        restartsBeforeWorld = restarts;
        Arrays.fill(unreadyNs, 0);
        Arrays.fill(isNew, false);
        worlds.begin();
    }
}
