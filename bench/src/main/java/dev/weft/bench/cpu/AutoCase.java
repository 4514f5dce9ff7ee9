package dev.weft.bench.cpu;

import dev.weft.bench.cpu.RandomProblem.Launcher;
import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.SkippedException;
import dev.weft.bench.peers.ChildCommand;
import dev.weft.bench.peers.Lab;
import dev.weft.bench.peers.Mpi;
import dev.weft.fabric.World;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * Whether {@code auto} chooses well: beside every algorithm on random problems, with ranks as
 * threads of this JVM, as processes and, in a lab, on hosts with links of several rates. Problems
 * with as many ranks share a start.
 */
final class AutoCase implements BenchCase {

    static final String ITEM = "auto";

    private static final Duration LIMIT_PER_START = Duration.ofMinutes(1);
    private static final Duration LIMIT_PER_PROBLEM = Duration.ofMinutes(2);

    @Override
    public String item() {
        return ITEM;
    }

    @Override
    public void run(Settings settings, Sink sink) throws IOException, InterruptedException {
        Runs runs = new Runs(settings, sink, new ArrayList<>());
        runs.threads();
        runs.processes();
        Optional<Lab> lab = Lab.current();
        if (lab.isPresent()) {
            runs.lab(lab.get());
        } else {
            sink.skipped(ITEM, RandomProblem.LAB + " problems on hosts: " + Lab.missing(ITEM));
        }
        AutoSummary summary = new AutoSummary(runs.times);
        sink.row(
                new BenchRow(
                        ITEM,
                        runs.times.size() + " problems of seed " + RandomProblem.SEED,
                        "the best of each",
                        summary.speed(),
                        summary.figures()));
    }

    /** One run of this case, and what it has found so far. */
    private record Runs(Settings settings, Sink sink, List<AutoTimes> times) {

        void threads() {
            for (RandomProblem problem : problems(Launcher.THREADS, 4)) {
                try (World world = World.threads(problem.ranks())) {
                    Interleaved.Effort effort = AutoRace.effort(settings.quick());
                    found(world.call(fabric -> AutoRace.run(fabric, problem, effort)).getFirst());
                }
            }
        }

        void processes() throws IOException, InterruptedException {
            for (List<RandomProblem> start : starts(Launcher.PROCESSES, RandomProblem::ranks)) {
                String ranks = Integer.toString(start.getFirst().ranks());
                List<String> command = new ArrayList<>(List.of("launch", "-n", ranks, "--"));
                command.addAll(rank(start).command());
                found(ChildCommand.weft(command, settings.folder()), start);
            }
        }

        void lab(Lab lab) throws IOException, InterruptedException {
            try {
                Mpi mpi = Mpi.find(settings.folder());
                for (List<RandomProblem> start :
                        starts(Launcher.LAB, p -> p.rate() + " " + p.ranks())) {
                    RandomProblem first = start.getFirst();
                    lab.rate(first.rate(), settings.folder());
                    List<String> command =
                            new ArrayList<>(mpi.startOnHosts(first.ranks(), first.ranksPerHost()));
                    command.addAll(rank(start, "--mpi").command());
                    found(new ChildCommand(command, settings.folder()), start);
                }
            } catch (SkippedException e) {
                sink.skipped(ITEM, e.getMessage());
            } finally {
                lab.rate("none", settings.folder());
            }
        }

        private List<RandomProblem> problems(Launcher launcher, int quickly) {
            return RandomProblem.of(launcher, settings.quick() ? quickly : Integer.MAX_VALUE);
        }

        /** Problems that can share a start, since they agree in {@code key}. */
        private Collection<List<RandomProblem>> starts(
                Launcher launcher, Function<RandomProblem, Object> key) {
            return problems(launcher, 2).stream()
                    .collect(Collectors.groupingBy(key, LinkedHashMap::new, Collectors.toList()))
                    .values();
        }

        private ChildCommand rank(List<RandomProblem> problems, String... more) {
            String indexes =
                    problems.stream()
                            .map(problem -> Integer.toString(problem.index()))
                            .collect(Collectors.joining(","));
            List<String> arguments =
                    new ArrayList<>(List.of("bench", AutoRanksCommand.NAME, "--problems", indexes));
            arguments.addAll(List.of(more));
            if (settings.quick()) {
                arguments.add("--quick");
            }
            return ChildCommand.weft(arguments, settings.folder());
        }

        private void found(ChildCommand child, List<RandomProblem> problems)
                throws IOException, InterruptedException {
            Duration limit = LIMIT_PER_START.plus(LIMIT_PER_PROBLEM.multipliedBy(problems.size()));
            List<AutoTimes> all = AutoTimes.parse(child.lines(limit));
            if (all.size() != problems.size()) {
                throw new IOException(
                        all.size() + " answers to " + problems.size() + " problems of item auto");
            }
            all.forEach(this::found);
        }

        private void found(AutoTimes found) {
            times.add(found);
            String name = RandomProblem.all().get(found.problem()).describe();
            sink.row(
                    new BenchRow(
                            ITEM,
                            name + ", auto " + found.chosen(),
                            found.best(),
                            1 / found.overBest(),
                            found.figures()));
        }
    }
}
