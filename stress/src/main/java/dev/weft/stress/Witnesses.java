package dev.weft.stress;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Who saw the ranks of one case; waits for their ends. Used by one thread. */
final class Witnesses implements AutoCloseable {

    /** For a process to be gone once its rank has ended; leaving MPI takes up to three seconds. */
    private static final long EXIT_MS = 10_000;

    private final Case run;

    /** By rank; several ranks may have the same. */
    private final Witness[] witnesses;

    /** Set where the fault comes from outside. */
    private long faultMs;

    Witnesses(Case run) {
        this.run = run;
        this.witnesses = new Witness[run.ranks()];
    }

    void add(int rank, Witness witness) {
        witnesses[rank] = witness;
    }

    Witness of(int rank) {
        return witnesses[rank];
    }

    void faultFromOutside() {
        faultMs = System.currentTimeMillis();
    }

    /** Waits for all ranks, ends the one that the fault has frozen, and tells what happened. */
    Ending await() {
        long until = System.currentTimeMillis() + run.patienceMs();
        while (System.currentTimeMillis() < until && !allEnded()) {
            LockSupport.parkNanos(5_000_000);
        }
        List<RankEnd> ends = new ArrayList<>();
        for (int rank = 0; rank < witnesses.length; rank++) {
            ends.add(end(rank));
        }
        return new Ending(run, faultMs() > 0, ends, stillThere());
    }

    private boolean allEnded() {
        for (int rank = 0; rank < witnesses.length; rank++) {
            if (witnesses[rank].of(rank).end == null
                    && !witnesses[rank].isSilent()
                    && !isSilenced(rank)) {
                return false;
            }
        }
        return true;
    }

    private boolean isSilenced(int rank) {
        Fault fault = run.fault();
        return rank == fault.rank()
                && faultMs() > 0
                && (fault.kind() == Fault.Kind.KILL || fault.kind() == Fault.Kind.FREEZE);
    }

    /** Where every rank is late, whoever was first. */
    private long faultMs() {
        long told = faultMs;
        for (int rank = 0; rank < witnesses.length; rank++) {
            told = Math.max(told, witnesses[rank].of(rank).faultMs);
        }
        return told;
    }

    private RankEnd end(int rank) {
        Witness.Words words = witnesses[rank].of(rank);
        if (words.end == null) {
            boolean gone = isSilenced(rank) || witnesses[rank].isSilent();
            return RankEnd.of(
                    rank,
                    gone ? RankEnd.How.DIED : RankEnd.How.HUNG,
                    "",
                    -1,
                    0,
                    witnesses[rank].others());
        }
        String[] parts = words.end.split(" ", 4);
        return switch (parts[0]) {
            case "right" ->
                    RankEnd.right(
                            rank,
                            new Workload.Tally(
                                    Long.parseLong(parts[1]),
                                    Long.parseLong(parts[2]),
                                    Long.parseLong(parts[3])));
            case "wrong" -> RankEnd.of(rank, RankEnd.How.WRONG, "", -1, 0, words.end);
            default ->
                    RankEnd.of(
                            rank,
                            parts[0].equals("error") ? RankEnd.How.ERROR : RankEnd.How.OTHER,
                            parts[1],
                            Integer.parseInt(parts[2]),
                            words.throwsMs - faultMs(),
                            parts[3]);
        };
    }

    /** Processes that do not end by themselves, but for one that cannot. */
    private List<String> stillThere() {
        Fault fault = run.fault();
        if (fault.kind() == Fault.Kind.FREEZE && faultMs() > 0) {
            ProcessSignals.send(witnesses[fault.rank()].of(fault.rank()).pid, ProcessSignals.KILL);
        }
        List<String> left = new ArrayList<>();
        for (int rank = 0; rank < witnesses.length; rank++) {
            // Its own process, and under a launcher that of the rank too.
            if (!witnesses[rank].awaitExit(EXIT_MS) || witnesses[rank].of(rank).isAlive()) {
                left.add(
                        "the process of rank " + rank + " still runs: " + witnesses[rank].others());
            }
        }
        return left;
    }

    @Override
    public void close() {
        for (Witness witness : witnesses) {
            if (witness != null) {
                witness.close();
            }
        }
    }
}
