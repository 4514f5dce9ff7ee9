package dev.weft.cli.launch;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.diagnosis.FailureDiagnosis;
import dev.weft.cli.diagnosis.FailureDiagnosis.ProcessEnd;
import dev.weft.cli.diagnosis.FailureTable;
import dev.weft.cli.diagnosis.RankFailure;
import dev.weft.fabric.memory.ShmJob;
import dev.weft.files.TemporaryFiles;
import dev.weft.process.SafeText;
import dev.weft.process.WaitTime;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Reader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/**
 * Starts this command as ranks by mpirun, and ends as it ends. What the ranks on this host left in
 * shared memory is removed.
 */
public final class MpiStart extends Mpirun {

    private static final long LOOK_MS = 100;

    /** After the deadline, for mpirun and Java to start. */
    private static final long START_NS = TimeUnit.SECONDS.toNanos(10);

    /** After the deadline, for ranks that have noticed a failure to report it. */
    private static final long TELL_NS = TimeUnit.SECONDS.toNanos(2);

    /** If a link is down, mpirun would wait for ever for the hosts behind it. */
    private static final long UNWIND_NS = TimeUnit.SECONDS.toNanos(10);

    private static final long ORDERLY_MS = 2_000;
    private static final long READ_MS = 1_000;

    private final int count;
    private final PrintWriter out;
    private final MpiRankMessages ranks;
    private final long deadlineNs;

    /** Whether a line about a failure has been passed on. */
    private volatile boolean complained;

    /** Whether this process is ending: then nobody reads what ranks say about it. */
    private volatile boolean ending;

    /** What is known about the ranks when mpirun has ended, or must be ended. */
    private Map<Integer, ProcessEnd> processEnds;

    /** Whether the ranks are silent, so that none would notice the end of its input. */
    private boolean hung;

    /** Whether mpirun is stopped, and so would not notice a signal either. */
    private boolean isStopped;

    /**
     * @param out where the ranks' standard output goes
     */
    public MpiStart(MpiCommandLine command, int count, Duration deadline, PrintWriter out)
            throws IOException {
        super(command.builder());
        this.count = count;
        this.out = out;
        this.ranks = new MpiRankMessages(count);
        this.deadlineNs = WaitTime.nanoseconds(deadline);
    }

    @Override
    int await() throws InterruptedException {
        tellOfLife();
        Thread output = Thread.ofPlatform().daemon().start(this::passOnOutput);
        Thread errors = Thread.ofPlatform().daemon().start(this::passOnErrors);
        String silence = awaitEnd();
        ranks.look(process().descendants());
        processEnds = ranks.processEnds();
        boolean byItself = !process().isAlive();
        end();
        output.join(READ_MS);
        errors.join(READ_MS);
        OptionalInt code = ranks.exitCode();
        boolean failed = code.isEmpty() || code.getAsInt() == ExitCode.FAILED;
        // A signal that also ends this process is reported once, when it ends.
        if (failed && TerminationSignal.received().isEmpty()) {
            tell(silence, byItself ? process().exitValue() : 0);
        }
        return code.orElse(ExitCode.FAILED);
    }

    /**
     * Returns when mpirun has ended or must be ended: some time after a rank has failed or all are
     * done, or when the first rank has been silent for the length of the deadline.
     *
     * @return why it is silent, or null
     */
    private String awaitEnd() throws InterruptedException {
        long silentNs = 0;
        long unwindNs = 0;
        long heard = 0;
        long lookedNs = System.nanoTime();
        while (!process().waitFor(LOOK_MS, TimeUnit.MILLISECONDS)) {
            long now = System.nanoTime();
            long stepNs = WaitTime.counted(lookedNs, now);
            lookedNs = now;
            boolean over = complained || ranks.exitCode().isPresent();
            boolean failing = over || ranks.haveFailed();
            unwindNs += failing ? stepNs : 0;
            if (unwindNs > UNWIND_NS + (over ? 0 : deadlineNs)) {
                return null;
            }
            silentNs = failing || ranks.heard() != heard ? 0 : silentNs + stepNs;
            heard = ranks.heard();
            if (silentNs > deadlineNs + (heard == 0 ? START_NS : TELL_NS)) {
                return silence(silentNs);
            }
        }
        return null;
    }

    private String silence(long silentNs) {
        String time =
                " for %s ms; a longer --deadline than %s ms waits longer"
                        .formatted(
                                TimeUnit.NANOSECONDS.toMillis(silentNs),
                                TimeUnit.NANOSECONDS.toMillis(deadlineNs));
        hung = true;
        isStopped = ProcessStates.isStopped(process().pid());
        if (isStopped) {
            return "mpirun (process %s) is stopped: its ranks gave no sign%s"
                    .formatted(process().pid(), time);
        }
        if (ranks.starts().isEmpty()) {
            return "no rank has come up: mpirun gave no sign" + time;
        }
        return ranks.haveJoined()
                ? "rank 0 gave no sign of life" + time
                : "the ranks have not met: rank 0 gave no sign of life" + time;
    }

    /**
     * Its input stays open as long as this process runs: the first rank listens for its end. Only a
     * rank that has received this takes the end of its input for this process's end.
     */
    private void tellOfLife() {
        try {
            process().getOutputStream().write('\n');
            process().getOutputStream().flush();
        } catch (IOException e) {
            // It has already ended, or reads no input.
            closed(e);
        }
    }

    /**
     * Each rank has printed its line; together they say more. Always prints a line.
     *
     * @param silence why mpirun had to be ended, or null
     * @param code its exit code if it ended on its own
     */
    private void tell(String silence, int code) {
        List<RankFailure> failures = ranks.ends();
        boolean caused = processEnds.values().stream().anyMatch(ProcessEnd::cause);
        boolean silent = silence != null && !ranks.starts().isEmpty() && !isStopped;
        String common = ranks.commonEnd(processEnds);
        if (common != null) {
            complain(common);
        } else if (!failures.isEmpty() || caused) {
            complain(
                    new FailureDiagnosis(failures, processEnds)
                            .line()
                            .orElse(failures.isEmpty() ? silence : failures.getFirst().message()));
        } else if (silent) {
            complain(hanging().map(ranks -> ranks + "; " + silence).orElse(silence));
        }
        if (failures.stream().anyMatch(end -> end.report().isPresent())) {
            FailureTable.lines(count, failures, processEnds).stream()
                    .map(SafeText::harmless)
                    .forEach(System.err::println);
        }
        if (!complained && silence != null) {
            complain(silence);
        }
        if (!complained) {
            complain(
                    code > RankProcesses.SIGNAL_EXIT
                            ? "mpirun was ended by signal " + (code - RankProcesses.SIGNAL_EXIT)
                            : "mpirun ended with exit code %s before %s"
                                    .formatted(
                                            code,
                                            ranks.starts().isEmpty()
                                                    ? "any rank had come up: did a signal end them?"
                                                    : "the run was over, and no rank has said"
                                                            + " why"));
        }
    }

    /** Which ranks hang, if it is known; ranks that run may only be slow. */
    private Optional<String> hanging() {
        Map<Integer, ProcessEnd> stopped = new TreeMap<>(processEnds);
        stopped.values().removeIf(end -> !end.equals(MpiRankMessages.STOPPED));
        return new FailureDiagnosis(List.of(), stopped).line();
    }

    private void complain(String line) {
        complained = true;
        System.err.println("weft: " + ErrorMessage.oneLine(line));
    }

    /** Done by this process, which notices lost output; mpirun would not. */
    private void passOnOutput() {
        try (Reader output = process().inputReader()) {
            char[] some = new char[4096];
            for (int count = output.read(some); count > 0; count = output.read(some)) {
                out.write(some, 0, count);
                out.flush();
            }
        } catch (IOException e) {
            // Closed: mpirun has been ended.
            closed(e);
        }
    }

    private static void closed(IOException e) {
        System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "a pipe to mpirun", e);
    }

    /** Passes on what ranks print for people, and keeps what they tell this process. */
    private void passOnErrors() {
        try (BufferedReader errors = process().errorReader()) {
            for (String line = errors.readLine(); line != null; line = errors.readLine()) {
                if (!ranks.take(line) && !ending) {
                    complained |= line.contains("weft: ");
                    System.err.println(SafeText.harmless(line));
                }
            }
        } catch (IOException e) {
            closed(e);
        }
    }

    @Override
    void abandon() {
        ending = true;
        end();
    }

    /**
     * First cleanly: the end of its input ends the first rank's run, and with it all others. A
     * signal comes later, because a second one, after the one that a terminal sends to all of its
     * processes, makes Open MPI abandon everything.
     */
    @Override
    void stop() {
        boolean gone = !process().isAlive();
        if (!gone && !hung) {
            closeInput();
            gone = hasEnded(ORDERLY_MS);
        }
        if (!gone && !isStopped) {
            process().destroy();
            gone = hasEnded(TERM_MS);
        }
        List<ProcessHandle> left = new ArrayList<>(ranks.processes());
        process().descendants().forEach(left::add);
        if (!gone) {
            process().destroyForcibly();
        }
        ProcessStates.awaitGone(left);
        left.forEach(ProcessHandle::destroyForcibly);
        ProcessStates.awaitGone(left);
        removeLeftovers();
    }

    private void closeInput() {
        try {
            process().getOutputStream().close();
        } catch (IOException e) {
            // It no longer reads: the signal will do.
            closed(e);
        }
    }

    private void removeLeftovers() {
        try {
            TemporaryFiles.removeLeft();
            ShmJob.removeStale();
            OpenMpiFiles.remove(ranks.starts(), process().pid());
        } catch (IOException e) {
            System.err.println("weft: cannot remove what the ranks have left: " + e.getMessage());
        }
    }
}
