package dev.weft.cli.launch;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.RunFailedException;
import dev.weft.cli.diagnosis.FailureDiagnosis;
import dev.weft.cli.diagnosis.FailureDiagnosis.ProcessEnd;
import dev.weft.cli.diagnosis.FailureTable;
import dev.weft.cli.diagnosis.RankFailure;
import dev.weft.fabric.memory.ShmJob;
import dev.weft.files.TemporaryFiles;
import dev.weft.text.SafeText;
import dev.weft.time.WaitTime;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Reader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.TimeUnit;

/**
 * Starts this very command as ranks by mpirun, and ends as it ends. However this process ends, but
 * for SIGKILL, mpirun and the ranks on this host are gone before, and what they have left in shared
 * memory is removed.
 */
public final class MpiStart {

    private static final long LOOK_MS = 100;

    /** Beyond the deadline, for mpirun and Java to start. */
    private static final long START_NS = TimeUnit.SECONDS.toNanos(10);

    /** Beyond the deadline, for ranks that have noticed a failure to tell of it. */
    private static final long TELL_NS = TimeUnit.SECONDS.toNanos(2);

    /** Where a link is down, mpirun would wait for ever for the hosts behind it. */
    private static final long UNWIND_NS = TimeUnit.SECONDS.toNanos(10);

    private static final long ORDERLY_MS = 2_000;
    private static final long TERM_MS = 3_000;
    private static final long READ_MS = 1_000;

    private final ProcessBuilder builder;
    private final int count;
    private final PrintWriter out;
    private final MpiRankMessages ranks;
    private final long deadlineNs;
    private Process mpirun;

    /** Whether a line that tells of a failure has been passed on. */
    private volatile boolean complained;

    /** Whether this process ends: nobody reads any more what ranks say about that. */
    private volatile boolean ending;

    /** What is known of the ranks when mpirun has ended, or has to be ended. */
    private Map<Integer, ProcessEnd> processEnds;

    /** Whether nothing is heard of the ranks, so that none would hear the end of its input. */
    private boolean hung;

    /** Whether mpirun has been stopped, and so would not hear a signal either. */
    private boolean isStopped;

    private boolean ended;

    /**
     * @param out where the ranks' standard output goes
     */
    public MpiStart(MpiCommandLine command, int count, Duration deadline, PrintWriter out)
            throws IOException {
        this.builder = command.builder();
        this.count = count;
        this.out = out;
        this.ranks = new MpiRankMessages(count);
        this.deadlineNs = WaitTime.nanoseconds(deadline);
    }

    public int run() throws IOException {
        // Its input stays open while this process lives: the first rank listens for its end.
        mpirun = builder.start();
        tellOfLife();
        Thread hook = new Thread(this::abandon, "weft-abandon");
        Runtime.getRuntime().addShutdownHook(hook);
        try {
            Thread output = Thread.ofPlatform().daemon().start(this::passOnOutput);
            Thread errors = Thread.ofPlatform().daemon().start(this::passOnErrors);
            String silence = awaitEnd();
            processEnds = ranks.processEnds();
            boolean byItself = !mpirun.isAlive();
            end();
            output.join(READ_MS);
            errors.join(READ_MS);
            RankProcesses.removeHook(hook);
            OptionalInt code = ranks.exitCode();
            boolean failed = code.isEmpty() || code.getAsInt() == ExitCode.FAILED;
            // A signal that ends this process too is told of once, when it ends.
            if (failed && TerminationSignal.received().isEmpty()) {
                tell(silence, byItself ? mpirun.exitValue() : 0);
            }
            return code.orElse(ExitCode.FAILED);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new RunFailedException("interrupted");
        } finally {
            end();
        }
    }

    /**
     * Returns when mpirun has ended or has to be ended: some time after a rank has failed or all
     * are done, or when nothing is heard of the first rank for the length of the deadline.
     *
     * @return why nothing is heard, or null
     */
    private String awaitEnd() throws InterruptedException {
        long silentNs = 0;
        long unwindNs = 0;
        long heard = 0;
        long lookedNs = System.nanoTime();
        while (!mpirun.waitFor(LOOK_MS, TimeUnit.MILLISECONDS)) {
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
        String time = " for " + TimeUnit.NANOSECONDS.toMillis(silentNs) + " ms";
        hung = true;
        isStopped = RankProcesses.isStopped(mpirun.pid());
        if (isStopped) {
            return "mpirun (process %s) is stopped: its ranks gave no sign%s"
                    .formatted(mpirun.pid(), time);
        }
        return ranks.starts().isEmpty()
                ? "no rank has started: mpirun gave no sign" + time
                : "rank 0 gave no sign of life" + time;
    }

    /** Only who has heard this takes the end of its input for the end of this process. */
    private void tellOfLife() {
        try {
            mpirun.getOutputStream().write('\n');
            mpirun.getOutputStream().flush();
        } catch (IOException e) {
            // It has ended already, or takes no input: so be it.
            closed(e);
        }
    }

    /**
     * Each rank has said its line; together they tell more. Never ends without a line.
     *
     * @param silence why mpirun had to be ended, or null
     * @param code with which it ended by itself
     */
    private void tell(String silence, int code) {
        List<RankFailure> told = ranks.ends();
        boolean caused = processEnds.values().stream().anyMatch(ProcessEnd::cause);
        boolean silent = silence != null && !ranks.starts().isEmpty() && !isStopped;
        String common = ranks.commonEnd(processEnds);
        if (common != null) {
            complain(common);
        } else if (!told.isEmpty() || caused || silent) {
            complain(
                    new FailureDiagnosis(told, processEnds)
                            .line()
                            .orElse(told.isEmpty() ? silence : told.getFirst().message()));
        }
        if (told.stream().anyMatch(end -> end.report().isPresent())) {
            FailureTable.lines(count, told, processEnds).stream()
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
                            : "mpirun ended with exit code "
                                    + code
                                    + " before the run was over, and no rank has said why");
        }
    }

    private void complain(String line) {
        complained = true;
        System.err.println("weft: " + ErrorMessage.oneLine(line));
    }

    /** By this process, which notices where it gets lost; mpirun would not. */
    private void passOnOutput() {
        try (Reader output = mpirun.inputReader()) {
            char[] some = new char[4096];
            for (int count = output.read(some); count > 0; count = output.read(some)) {
                out.write(some, 0, count);
                out.flush();
            }
        } catch (IOException e) {
            // Closed under us: mpirun has been ended.
            closed(e);
        }
    }

    private static void closed(IOException e) {
        System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "a pipe to mpirun", e);
    }

    /** What ranks say to people, and what they say to this process. */
    private void passOnErrors() {
        try (BufferedReader errors = mpirun.errorReader()) {
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

    /** This process is told to end: so are its ranks. */
    private void abandon() {
        ending = true;
        end();
    }

    /**
     * Ends mpirun and the ranks, unless they have ended, in good order first: the end of its input
     * ends the first rank's run and so all. A signal comes later, because a second one, after that
     * of a terminal to all of its processes, makes Open MPI drop everything as it is.
     */
    private synchronized void end() {
        if (ended) {
            return;
        }
        ended = true;
        boolean gone = !mpirun.isAlive();
        if (!gone && !hung) {
            closeInput();
            gone = hasEnded(ORDERLY_MS);
        }
        if (!gone && !isStopped) {
            mpirun.destroy();
            gone = hasEnded(TERM_MS);
        }
        List<ProcessHandle> left = new ArrayList<>(ranks.processes());
        mpirun.descendants().forEach(left::add);
        if (!gone) {
            mpirun.destroyForcibly();
        }
        RankProcesses.awaitGone(left.stream());
        left.forEach(ProcessHandle::destroyForcibly);
        RankProcesses.awaitGone(left.stream());
        removeLeftovers();
    }

    private void closeInput() {
        try {
            mpirun.getOutputStream().close();
        } catch (IOException e) {
            // It no longer reads: the signal will do.
            closed(e);
        }
    }

    private boolean hasEnded(long withinMs) {
        try {
            return mpirun.waitFor(withinMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private void removeLeftovers() {
        try {
            TemporaryFiles.removeLeft();
            ShmJob.removeStale();
            OpenMpiFiles.remove(ranks.starts(), mpirun.pid());
        } catch (IOException e) {
            System.err.println("weft: cannot remove what the ranks have left: " + e.getMessage());
        }
    }
}
