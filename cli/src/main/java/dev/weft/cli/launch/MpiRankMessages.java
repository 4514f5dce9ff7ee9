package dev.weft.cli.launch;

import dev.weft.cli.diagnosis.FailureDiagnosis.ProcessEnd;
import dev.weft.cli.diagnosis.RankFailure;
import dev.weft.cli.message.RankLines;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * What the ranks under mpirun have told the command, by marked lines among their other output. One
 * thread adds lines, another one reads.
 */
public final class MpiRankMessages {

    /**
     * Now and then from the first rank, for as long as it runs.
     *
     * @param joined whether all ranks have joined
     */
    public record Alive(boolean joined) {}

    /** From the first rank: nothing after it changes the result. */
    public record Exit(int code) {}

    /** From a rank that a signal ends. */
    public record Signal(String name) {}

    private static final String TERMINATED = "SIGTERM";

    /** In an environment; variables end with a zero. */
    private static final Pattern RANK =
            Pattern.compile("(?:^|\0)(?:OMPI_COMM_WORLD|PMIX|PMI)_RANK=([0-9]{1,6})(?:\0|$)");

    /** Why a rank fails when its input ends, even if only mpirun has ended it. */
    public static final String STARTER_GONE = "the command that started this run is gone";

    static final ProcessEnd STOPPED = new ProcessEnd(false, "is stopped");
    private static final ProcessEnd DIED = new ProcessEnd(true, "died");
    private static final ProcessEnd KILLED = new ProcessEnd(false, "was killed");

    private final int count;
    private final RankLines lines =
            new RankLines(
                    List.of(
                            Alive.class,
                            Exit.class,
                            Signal.class,
                            RankStart.class,
                            RankFailure.class),
                    this::keep);
    private final Map<Integer, RankFailure> ends = new TreeMap<>();
    private final Map<Integer, RankStart> starts = new TreeMap<>();
    private final Map<Integer, ProcessHandle> processes = new TreeMap<>();
    private final Map<Integer, String> signals = new TreeMap<>();

    /** Processes on this host of ranks that have not reported their start. */
    private final Map<Integer, ProcessHandle> starting = new TreeMap<>();

    private boolean joined;
    private int exitCode = -1;
    private long heard;

    MpiRankMessages(int count) {
        this.count = count;
    }

    /** Whether the line is for this process; if so, it is kept. */
    synchronized boolean take(String line) {
        boolean taken = lines.take(line);
        heard += taken ? 1 : 0;
        return taken;
    }

    private void keep(int rank, Record message) {
        switch (message) {
            case Alive alive -> joined |= alive.joined();
            case Exit exit -> exitCode = exit.code();
            case Signal signal -> signals.put(rank, signal.name());
            case RankFailure end -> ends.put(rank, end.ofRank(rank));
            case RankStart start -> {
                starts.put(rank, start);
                start.process().ifPresent(process -> processes.put(rank, process));
            }
            default -> {}
        }
    }

    /** Grows with every message. */
    synchronized long heard() {
        return heard;
    }

    /** The exit code of the first rank, once it knows it. */
    synchronized OptionalInt exitCode() {
        return exitCode < 0 ? OptionalInt.empty() : OptionalInt.of(exitCode);
    }

    /** Whether the first rank has said that all ranks have joined. */
    synchronized boolean haveJoined() {
        return joined;
    }

    /**
     * Looks for ranks that have not reported their start.
     *
     * @param processes what mpirun has started on this host; launchers put the rank's number into
     *     the environment
     */
    synchronized void look(Stream<ProcessHandle> processes) {
        starting.clear();
        processes.forEach(
                process -> {
                    Matcher rank = RANK.matcher(environment(process));
                    if (rank.find()) {
                        starting.putIfAbsent(Integer.parseInt(rank.group(1)), process);
                    }
                });
    }

    /**
     * Of another process; empty if it is gone, or another user's, or the system has no such file.
     */
    private static String environment(ProcessHandle process) {
        try {
            Path file = Path.of("/proc", Long.toString(process.pid()), "environ");
            return new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no environment", e);
            return "";
        }
    }

    synchronized List<RankStart> starts() {
        return List.copyOf(starts.values());
    }

    /** The ranks' processes on this host. */
    synchronized List<ProcessHandle> processes() {
        return List.copyOf(processes.values());
    }

    synchronized boolean haveFailed() {
        return !ends.isEmpty()
                || processes.values().stream().anyMatch(process -> !process.isAlive());
    }

    synchronized List<RankFailure> ends() {
        return List.copyOf(ends.values());
    }

    /** By rank: what is known now about those that have not reported their end. */
    synchronized Map<Integer, ProcessEnd> processEnds() {
        Map<Integer, ProcessEnd> processEnds = new TreeMap<>();
        for (int rank = 0; rank < count; rank++) {
            ProcessEnd processEnd = processEnd(rank);
            if (processEnd != null) {
                processEnds.put(rank, processEnd);
            }
        }
        processEnds.keySet().removeAll(ends.keySet());
        long causes = processEnds.values().stream().filter(ProcessEnd::cause).count();
        if (causes > 1) {
            // A launcher may kill all ranks when one dies: nobody knows which came first.
            processEnds.replaceAll(
                    (rank, processEnd) -> processEnd.equals(DIED) ? KILLED : processEnd);
        }
        return processEnds;
    }

    /** What happened to all ranks together, none of which is the cause; null if one may be. */
    synchronized String commonEnd(Map<Integer, ProcessEnd> processEnds) {
        boolean knowsCause =
                processEnds.values().stream().anyMatch(ProcessEnd::cause)
                        || ends().stream().anyMatch(MpiRankMessages::isOwn);
        if (knowsCause) {
            return null;
        }
        if (mpirunEnds()) {
            return "mpirun ended the ranks before the run was over: was it told to end?";
        }
        boolean allKilled =
                processEnds.size() == count
                        && processEnds.values().stream().allMatch(KILLED::equals);
        return allKilled ? "all ranks were killed" : null;
    }

    /** Whether mpirun has told ranks to end, as it does when it is told so itself. */
    private boolean mpirunEnds() {
        return signals.containsValue(TERMINATED)
                || ends.values().stream().anyMatch(MpiRankMessages::lostStarter);
    }

    private static boolean lostStarter(RankFailure end) {
        return end.message().contains(STARTER_GONE);
    }

    /** Whether the rank ended on its own, not because of another. */
    private static boolean isOwn(RankFailure end) {
        return !lostStarter(end)
                && end.reason() != RankFailure.Reason.PEER_FAILED
                && end.reason() != RankFailure.Reason.LOST;
    }

    private ProcessEnd processEnd(int rank) {
        if (signals.containsKey(rank)) {
            String signal = signals.get(rank);
            // Launchers send SIGTERM to all when they end the job.
            return new ProcessEnd(!signal.equals(TERMINATED), "was ended by " + signal);
        }
        if (!starts.containsKey(rank)) {
            return notReported(starting.get(rank));
        }
        ProcessHandle process = processes.get(rank);
        if (process == null) {
            return null;
        }
        if (!process.isAlive()) {
            return DIED;
        }
        return ProcessStates.isStopped(process.pid())
                ? STOPPED
                : new ProcessEnd(false, "did not end by itself");
    }

    /** A rank that has not reported its start, because it could not, or was ended before. */
    private ProcessEnd notReported(ProcessHandle process) {
        if (process != null && process.isAlive()) {
            return ProcessStates.isStopped(process.pid())
                    ? STOPPED
                    : new ProcessEnd(false, "is still starting");
        }
        return new ProcessEnd(!starts.isEmpty() && !mpirunEnds(), "never came up");
    }
}
