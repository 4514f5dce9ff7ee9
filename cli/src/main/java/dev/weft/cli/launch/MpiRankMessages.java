package dev.weft.cli.launch;

import dev.weft.cli.console.ExitCode;
import dev.weft.cli.diagnosis.FailureDiagnosis;
import dev.weft.cli.diagnosis.FailureLines;
import dev.weft.cli.diagnosis.RankFailure;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.TreeMap;

/**
 * What the ranks under mpirun have told the command, by marked lines among those that are meant for
 * people. One thread gives lines, another asks.
 */
public final class MpiRankMessages {

    /** Now and then from the first rank, for as long as it runs. */
    public static final String ALIVE = "weft-alive";

    /** From the first rank, with its exit code: what happens afterwards changes nothing. */
    private static final String EXIT = "weft-exit ";

    /** From a rank that a signal ends, with its number and the signal's name. */
    private static final String SIGNAL = "weft-signal ";

    private static final String TERMINATED = "SIGTERM";

    /** Why a rank fails when its input ends, also where mpirun alone has ended it. */
    public static final String STARTER_GONE = "the command that started this run is gone";

    private static final FailureDiagnosis.ProcessEnd DIED =
            new FailureDiagnosis.ProcessEnd(true, "died");
    private static final FailureDiagnosis.ProcessEnd KILLED =
            new FailureDiagnosis.ProcessEnd(false, "was killed");

    private final int count;
    private final FailureLines ends = new FailureLines();
    private final Map<Integer, RankStart> starts = new TreeMap<>();
    private final Map<Integer, ProcessHandle> processes = new TreeMap<>();
    private final Map<Integer, String> signals = new TreeMap<>();
    private int exitCode = -1;
    private long heard;

    MpiRankMessages(int count) {
        this.count = count;
    }

    public static String exit(int code) {
        return EXIT + code;
    }

    public static String signal(int rank, String name) {
        return SIGNAL + rank + " " + name;
    }

    /** Whether the line is for this process; if so it is kept. */
    synchronized boolean take(String line) {
        boolean taken = line.contains(ALIVE) || isExit(line) || isSignal(line) || isStart(line);
        taken = taken || ends.take(line);
        heard += taken ? 1 : 0;
        return taken;
    }

    private boolean isExit(String line) {
        String code = after(EXIT, line);
        if (code == null) {
            return false;
        }
        exitCode = code.equals("0") ? 0 : code.equals("2") ? ExitCode.USAGE : ExitCode.FAILED;
        return true;
    }

    private boolean isSignal(String line) {
        String said = after(SIGNAL, line);
        if (said == null || !said.matches("[0-9]{1,6} [A-Za-z ]{1,20}")) {
            return false;
        }
        int blank = said.indexOf(' ');
        signals.put(Integer.parseInt(said.substring(0, blank)), said.substring(blank + 1));
        return true;
    }

    private boolean isStart(String line) {
        RankStart start = RankStart.of(line).orElse(null);
        if (start == null) {
            return false;
        }
        starts.put(start.rank(), start);
        start.process().ifPresent(process -> processes.put(start.rank(), process));
        return true;
    }

    /** What follows the mark; null where it is not there. */
    private static String after(String mark, String line) {
        // Not only at the beginning: launchers can be told to put the rank's number there.
        int at = line.indexOf(mark);
        return at < 0 ? null : line.substring(at + mark.length()).strip();
    }

    /** Grows with every message. */
    synchronized long heard() {
        return heard;
    }

    /** The code that the first rank ends with, once it knows. */
    synchronized OptionalInt exitCode() {
        return exitCode < 0 ? OptionalInt.empty() : OptionalInt.of(exitCode);
    }

    synchronized List<RankStart> starts() {
        return List.copyOf(starts.values());
    }

    /** The ranks' processes on this host. */
    synchronized List<ProcessHandle> processes() {
        return List.copyOf(processes.values());
    }

    synchronized boolean haveFailed() {
        return !ends.ends().isEmpty()
                || processes.values().stream().anyMatch(process -> !process.isAlive());
    }

    List<RankFailure> ends() {
        return ends.ends();
    }

    /** By rank: what is known just now of those that have not told their end. */
    synchronized Map<Integer, FailureDiagnosis.ProcessEnd> processEnds() {
        Map<Integer, FailureDiagnosis.ProcessEnd> processEnds = new TreeMap<>();
        for (int rank = 0; rank < count; rank++) {
            FailureDiagnosis.ProcessEnd processEnd = processEnd(rank);
            if (processEnd != null) {
                processEnds.put(rank, processEnd);
            }
        }
        ends().forEach(end -> processEnds.remove(end.rank()));
        long causes =
                processEnds.values().stream().filter(FailureDiagnosis.ProcessEnd::cause).count();
        if (causes > 1) {
            // A launcher that kills all ranks when one dies: nobody knows which came first.
            processEnds.replaceAll(
                    (rank, processEnd) -> processEnd.equals(DIED) ? KILLED : processEnd);
        }
        return processEnds;
    }

    /** What has befallen the ranks together, none of which is the cause; null where one may be. */
    synchronized String commonEnd(Map<Integer, FailureDiagnosis.ProcessEnd> processEnds) {
        boolean knowsCause =
                processEnds.values().stream().anyMatch(FailureDiagnosis.ProcessEnd::cause)
                        || ends().stream().anyMatch(MpiRankMessages::isOwn);
        if (knowsCause) {
            return null;
        }
        boolean inputEnded = ends().stream().anyMatch(end -> end.message().contains(STARTER_GONE));
        if (signals.containsValue(TERMINATED) || inputEnded) {
            return "mpirun ended the ranks before the run was over: was it told to end?";
        }
        boolean allKilled =
                processEnds.size() == count
                        && processEnds.values().stream().allMatch(KILLED::equals);
        return allKilled ? "all ranks were killed" : null;
    }

    /** Whether the rank did not end because of another. */
    private static boolean isOwn(RankFailure end) {
        return end.kind() != RankFailure.Kind.TOLD && end.kind() != RankFailure.Kind.LOST;
    }

    private FailureDiagnosis.ProcessEnd processEnd(int rank) {
        if (signals.containsKey(rank)) {
            String signal = signals.get(rank);
            // Launchers send SIGTERM to all when they end the job.
            return new FailureDiagnosis.ProcessEnd(
                    !signal.equals(TERMINATED), "was ended by " + signal);
        }
        if (!starts.containsKey(rank)) {
            return new FailureDiagnosis.ProcessEnd(!starts.isEmpty(), "never started");
        }
        ProcessHandle process = processes.get(rank);
        if (process == null) {
            return null;
        }
        if (!process.isAlive()) {
            return DIED;
        }
        boolean stopped = RankProcesses.isStopped(process.pid());
        return new FailureDiagnosis.ProcessEnd(
                false, stopped ? "is stopped" : "did not end by itself");
    }
}
