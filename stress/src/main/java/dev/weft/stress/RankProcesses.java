package dev.weft.stress;

import dev.weft.cli.message.RankLines;
import java.io.BufferedReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** The processes of one case's ranks; waits for their ends. Used by one thread. */
final class RankProcesses implements AutoCloseable {

    /** For a process to be gone once its rank has ended; leaving MPI takes up to three seconds. */
    private static final long EXIT_MS = 10_000;

    /** What one rank has said so far. */
    private static final class Words {
        volatile long pid;
        volatile long faultMs;
        volatile long throwsMs;

        /** How it ended, or null. */
        volatile RankEnd end;

        boolean isAlive() {
            return pid > 0 && ProcessHandle.of(pid).filter(ProcessHandle::isAlive).isPresent();
        }
    }

    /**
     * A process in which one rank lives, or under which several do, and what they say ({@link
     * RankMain}). Any thread may ask.
     */
    static final class Output implements AutoCloseable {

        private static final int OTHER_LINES = 30;

        private final Process process;
        private final Map<Integer, Words> words = new ConcurrentHashMap<>();
        private final Queue<String> others = new ConcurrentLinkedQueue<>();
        private final Thread reader;

        Output(ProcessBuilder builder) throws IOException {
            process = builder.redirectErrorStream(true).start();
            reader = Thread.ofPlatform().daemon().name("rank-output").start(this::read);
        }

        private void read() {
            RankLines messages = new RankLines(RankMain.MESSAGES, this::hear);
            try (BufferedReader lines = process.inputReader()) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    if (!messages.take(line) && others.size() < OTHER_LINES) {
                        others.add(line);
                    }
                }
            } catch (IOException e) {
                others.add("reading failed: " + e.getMessage());
            }
        }

        private void hear(int rank, Record said) {
            Words of = of(rank);
            if (said instanceof RankMain.Started started) {
                of.pid = started.pid();
            } else if (said instanceof RankMain.FaultAt fault) {
                of.faultMs = fault.ms();
            } else if (said instanceof RankMain.ThrownAt thrown) {
                of.throwsMs = thrown.ms();
            } else {
                if (of.throwsMs == 0) {
                    of.throwsMs = System.currentTimeMillis();
                }
                of.end = (RankEnd) said;
            }
        }

        private Words of(int rank) {
            return words.computeIfAbsent(rank, r -> new Words());
        }

        /** Whether the process is gone and all that it said has been heard. */
        private boolean isSilent() {
            return !process.isAlive() && !reader.isAlive();
        }

        long pid() {
            return process.pid();
        }

        /** What else was said: errors of Java or of a launcher. */
        private String others() {
            return String.join(" | ", others);
        }

        private boolean awaitExit() {
            try {
                return process.waitFor(EXIT_MS, TimeUnit.MILLISECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return false;
            }
        }

        /** With all that it has started. */
        @Override
        public void close() {
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            words.values().stream()
                    .filter(w -> w.pid > 0)
                    .forEach(w -> ProcessHandle.of(w.pid).ifPresent(Output::killRank));
            process.destroyForcibly();
        }

        private static void killRank(ProcessHandle rank) {
            // A number may belong to another process by now: ranks are Java like this process.
            if (rank.info().command().equals(ProcessHandle.current().info().command())) {
                rank.destroyForcibly();
            }
        }
    }

    private final Case run;

    /** By rank; several ranks may have the same. */
    private final Output[] outputs;

    /** Set where the fault comes from outside. */
    private long outsideFaultMs;

    RankProcesses(Case run) {
        this.run = run;
        this.outputs = new Output[run.ranks()];
    }

    void add(int rank, Output output) {
        outputs[rank] = output;
    }

    Output of(int rank) {
        return outputs[rank];
    }

    private Words words(int rank) {
        return outputs[rank].of(rank);
    }

    void faultFromOutside() {
        outsideFaultMs = System.currentTimeMillis();
    }

    /** Waits for all ranks, ends the one that the fault has frozen, and says how they ended. */
    Ending await() {
        long until = System.currentTimeMillis() + run.timeoutMs();
        while (System.currentTimeMillis() < until && !allEnded()) {
            LockSupport.parkNanos(5_000_000);
        }
        List<RankEnd> ends = new ArrayList<>();
        for (int rank = 0; rank < outputs.length; rank++) {
            ends.add(end(rank));
        }
        return new Ending(run, faultMs() > 0, ends, stillThere());
    }

    private boolean allEnded() {
        for (int rank = 0; rank < outputs.length; rank++) {
            if (words(rank).end == null && !outputs[rank].isSilent() && !isSilenced(rank)) {
                return false;
            }
        }
        return true;
    }

    private boolean isSilenced(int rank) {
        Fault fault = run.fault();
        return rank == fault.rank()
                && faultMs() > 0
                && (fault.type() == Fault.Type.KILL || fault.type() == Fault.Type.FREEZE);
    }

    /** The latest of those that ranks have told of: every rank may be late. */
    private long faultMs() {
        long latest = outsideFaultMs;
        for (int rank = 0; rank < outputs.length; rank++) {
            latest = Math.max(latest, words(rank).faultMs);
        }
        return latest;
    }

    private RankEnd end(int rank) {
        Words words = words(rank);
        if (words.end == null) {
            boolean gone = isSilenced(rank) || outputs[rank].isSilent();
            RankEnd.How how = gone ? RankEnd.How.DIED : RankEnd.How.HUNG;
            return RankEnd.of(rank, how, "", -1, 0, outputs[rank].others());
        }
        return words.end.after(words.throwsMs - faultMs());
    }

    /** Processes that do not end by themselves, but for one that cannot. */
    private List<String> stillThere() {
        Fault fault = run.fault();
        if (fault.type() == Fault.Type.FREEZE && faultMs() > 0) {
            ProcessSignals.send(words(fault.rank()).pid, ProcessSignals.KILL);
        }
        List<String> left = new ArrayList<>();
        for (int rank = 0; rank < outputs.length; rank++) {
            // Its own process, and under a launcher that of the rank too.
            if (!outputs[rank].awaitExit() || words(rank).isAlive()) {
                left.add("the process of rank " + rank + " still runs: " + outputs[rank].others());
            }
        }
        return left;
    }

    @Override
    public void close() {
        for (Output output : outputs) {
            if (output != null) {
                output.close();
            }
        }
    }
}
