package dev.weft.stress;

import java.io.PrintWriter;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Random problems on random launchers with random faults, for as long as wanted. */
@Command(
        name = "soak",
        mixinStandardHelpOptions = true,
        description =
                "Runs random problems over random launchers with random faults, compares every"
                        + " result bit for bit, and watches memory, file handles, threads and shared"
                        + " memory for growth. Prints a seed; with it all is the same again.",
        footer = {
            "",
            "Examples:",
            "  ./weft soak --minutes 30",
            "  ./weft soak --seed 42 --case 17      that case of that soak alone"
        })
final class SoakCommand implements Callable<Integer> {

    private static final long REPORT_NS = TimeUnit.SECONDS.toNanos(60);

    @Spec CommandSpec spec;

    @Option(
            names = "--minutes",
            paramLabel = "N",
            description = "How long (default: ${DEFAULT-VALUE}); fractions are allowed.")
    double minutes = 1;

    @Option(names = "--seed", paramLabel = "N", description = "Default: another one each time.")
    Long seed;

    @Option(names = "--case", paramLabel = "N", description = "Only the case of this number.")
    Integer single;

    @Option(
            names = "--deadline",
            paramLabel = "MS",
            description = "The deadline of every wait (default: ${DEFAULT-VALUE}).")
    long deadlineMs = 3_000;

    private final Growth growth = new Growth();
    private final Map<Fault.Type, Integer> faults = new EnumMap<>(Fault.Type.class);
    private final Map<Case.Launcher, Integer> launchers = new EnumMap<>(Case.Launcher.class);
    private final List<String> problems = new ArrayList<>();
    private Workload.Tally tally = Workload.Tally.NOTHING;
    private long errors;
    private int cases;

    @Override
    public Integer call() {
        if (!(minutes > 0 && minutes <= 100_000)) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--minutes " + minutes + ": expected more than 0, at most 100000");
        }
        if (deadlineMs < 100) {
            throw new ParameterException(
                    spec.commandLine(), "--deadline " + deadlineMs + ": expected at least 100 ms");
        }
        PrintWriter out = spec.commandLine().getOut();
        long start = seed == null ? new SecureRandom().nextInt(Integer.MAX_VALUE) : seed;
        out.println("seed " + start + ": ./weft soak --seed " + start + " replays it");
        MpirunRanks.unavailable().ifPresent(why -> out.println("without MPI: " + why));
        out.flush();
        if (single != null) {
            one(start, single);
        } else {
            soak(start, out);
        }
        tell(out);
        return problems.isEmpty() ? 0 : 1;
    }

    private void soak(long start, PrintWriter out) {
        long until = System.nanoTime() + (long) (minutes * TimeUnit.MINUTES.toNanos(1));
        long reportedNs = System.nanoTime();
        for (int number = 0; System.nanoTime() < until; number++) {
            one(start, number);
            growth.add(Footprint.now());
            if (System.nanoTime() - reportedNs > REPORT_NS) {
                reportedNs = System.nanoTime();
                tell(out);
            }
        }
        problems.addAll(growth.leaks());
    }

    private void one(long start, int number) {
        SplittableRandom random = new SplittableRandom(start * 1_000_003 + number);
        Case run = Case.random(random.nextLong(), launcher(random.nextInt(10)), deadlineMs);
        cases++;
        launchers.merge(run.launcher(), 1, Integer::sum);
        Ending ending;
        try {
            ending = run.execute();
        } catch (RuntimeException e) {
            found(number, run, "could not be run: " + e);
            return;
        }
        if (ending.occurred()) {
            faults.merge(run.fault().type(), 1, Integer::sum);
        }
        errors += ending.errors();
        tally = tally.plus(ending.tally());
        ending.problems().forEach(problem -> found(number, run, problem));
    }

    private void found(int number, Case run, String problem) {
        problems.add("case " + number + " (" + run.words() + "): " + problem);
        spec.commandLine().getErr().println("weft: " + problems.getLast());
        spec.commandLine().getErr().flush();
    }

    private static Case.Launcher launcher(int draw) {
        if (draw < 6) {
            return Case.Launcher.THREADS;
        }
        if (draw < 8 || MpirunRanks.unavailable().isPresent()) {
            return Case.Launcher.PROCESSES;
        }
        return draw == 8 ? Case.Launcher.MPI : Case.Launcher.HOSTS;
    }

    private void tell(PrintWriter out) {
        int injected = faults.values().stream().mapToInt(Integer::intValue).sum();
        long wrong = problems.stream().filter(problem -> problem.contains("WRONG")).count();
        out.printf(
                Locale.ROOT,
                "%d cases %s, %,d calls (%,d of sums), faults injected %d %s, errors raised %d, %,d bytes verified,"
                        + " wrong results %d, problems %d%n",
                cases,
                launchers,
                tally.calls(),
                tally.sums(),
                injected,
                faults,
                errors,
                tally.bytes(),
                wrong,
                problems.size());
        if (growth.size() > 0) {
            Footprint last = growth.last();
            out.printf(
                    Locale.ROOT,
                    "  heap %d MiB, resident %d MiB, %d file handles, %d threads, %d folders in shared"
                            + " memory; leaks %s%n",
                    last.heapBytes() >> 20,
                    last.residentBytes() >> 20,
                    last.handles(),
                    last.threads(),
                    last.sharedFolders(),
                    growth.leaks().isEmpty() ? "0" : growth.leaks());
        }
        out.flush();
    }
}
