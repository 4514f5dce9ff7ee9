package dev.weft.stress;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Signals to the command, its group of processes, its ranks and mpirun, at four moments of a run.
 * The command must end with the code that the signal asks for, or say what happened, and leave
 * nothing. The data of all cases is made once.
 */
final class CommandSignals {

    private static final long GRACE_MS = 5_000;
    private static final long STOPPED_MS = 4_000;
    private static final int TRIES = 3;

    /** Little to multiply, and files of 64 MiB, so that a run is met while it writes and checks. */
    private static final String SHAPE = "--gm 4096 --gk 8 --gn 4096";

    /** The vector engine needs a compiler that these runs go without. */
    private static final String HOW = "--engine scalar --deadline 3s --algorithm ring";

    /** What a run is at. */
    enum Moment {
        GENERATING,
        MEASURING,
        WRITING,
        VERIFYING;

        String label() {
            return name().toLowerCase(Locale.ROOT);
        }

        /** Whether the run is at it now. */
        boolean isNow(CommandRun command, Path data) {
            boolean parts = names(data).anyMatch(name -> name.endsWith(".part"));
            boolean begun = command.hasPrinted("Running warmup");
            return switch (this) {
                case GENERATING -> parts && !begun;
                case MEASURING -> begun && command.hasRanksAtWork();
                case WRITING -> parts && begun;
                case VERIFYING ->
                        Files.exists(data.resolve("output_rank0.bin"))
                                && Files.exists(data.resolve("output_rank1.bin"));
            };
        }

        private List<String> iterations(boolean ends) {
            if (this == MEASURING) {
                return List.of("--warmup", "0", "--iterations", ends ? "3" : "100000");
            }
            return List.of("--warmup", "0", "--iterations", "1");
        }
    }

    /** Who gets the signal. */
    enum Target {
        GROUP("the group"),
        COMMAND("the command"),
        RANKS("all ranks"),
        MPIRUN("mpirun"),
        JOB("the whole job");

        private final String words;

        Target(String words) {
            this.words = words;
        }
    }

    private final FaultTable table;

    CommandSignals(FaultTable table) {
        this.table = table;
    }

    /** One signal to one target. */
    private record Signalled(String launcher, Moment moment, Target target, String signal) {

        /** Whether the run is to go on: the job is stopped and continued. */
        boolean continues() {
            return target == Target.JOB;
        }

        String fault() {
            return "SIG" + signal + (continues() ? " and SIGCONT" : "") + " to " + target.words;
        }

        List<String> arguments(Path data) {
            List<String> arguments = new ArrayList<>(List.of("run", "-n", "2"));
            arguments.addAll(List.of((SHAPE + " " + HOW).split(" ")));
            arguments.addAll(moment.iterations(continues()));
            arguments.addAll(List.of("--launcher", launcher, "--data-dir", data.toString()));
            return arguments;
        }
    }

    /** All signals that a launcher's processes can get at all moments. */
    private static List<Signalled> cases(String launcher) {
        List<Signalled> cases = new ArrayList<>();
        for (Moment moment : Moment.values()) {
            cases.add(new Signalled(launcher, moment, Target.GROUP, "INT"));
            cases.add(new Signalled(launcher, moment, Target.COMMAND, "TERM"));
            if (!launcher.equals("threads")) {
                cases.add(new Signalled(launcher, moment, Target.COMMAND, "KILL"));
                if (moment == Moment.MEASURING || moment == Moment.WRITING) {
                    cases.add(new Signalled(launcher, moment, Target.RANKS, "KILL"));
                    cases.add(new Signalled(launcher, moment, Target.RANKS, "STOP"));
                }
            }
            if (launcher.equals("mpi")) {
                for (String signal : List.of("INT", "KILL", "STOP")) {
                    cases.add(new Signalled(launcher, moment, Target.MPIRUN, signal));
                }
            }
        }
        cases.add(new Signalled(launcher, Moment.MEASURING, Target.JOB, "STOP"));
        return cases;
    }

    void run(List<String> launchers) {
        CommandFaults.inFolders(
                (shared, data) -> {
                    generate(shared, data);
                    for (String launcher : launchers) {
                        cases(launcher).forEach(one -> run(one, data));
                    }
                });
    }

    private static void generate(Path shared, Path data) {
        List<String> arguments = new ArrayList<>(List.of("gen-data", "-n", "2"));
        arguments.addAll(List.of(SHAPE.split(" ")));
        arguments.addAll(List.of("--data-dir", data.toString()));
        try (CommandRun command = new CommandRun(shared, data, List.of(), arguments)) {
            if (command.awaitExit() != 0) {
                throw new IllegalStateException("no data: " + command.output());
            }
        }
    }

    /** Tried again where the run had passed the moment before the signal came. */
    private void run(Signalled one, Path generated) {
        for (int left = TRIES - 1; left >= 0; left--) {
            boolean last = left == 0;
            boolean[] inTime = {false};
            CommandFaults.inFolders(
                    (shared, data) -> {
                        if (one.moment != Moment.GENERATING) {
                            link(generated, data);
                        }
                        inTime[0] = run(one, shared, data, last);
                    });
            if (inTime[0]) {
                return;
            }
        }
    }

    private boolean run(Signalled one, Path shared, Path data, boolean last) {
        List<String> segments = CommandRun.segments();
        try (CommandRun command =
                new CommandRun(shared, data, List.of("setsid"), one.arguments(data))) {
            boolean inTime = command.await(() -> one.moment.isNow(command, data));
            long beganNs = System.nanoTime();
            List<Long> pids = pids(command, one.target, one.launcher);
            command.noteChildren();
            pids.forEach(pid -> ProcessSignals.send(pid, ProcessSignals.number(one.signal)));
            if (one.continues()) {
                Injector.sleepMicros(TimeUnit.MILLISECONDS.toMicros(STOPPED_MS));
                pids.forEach(pid -> ProcessSignals.send(pid, ProcessSignals.CONT));
            }
            int code = command.awaitExit();
            long tookNs = System.nanoTime() - beganNs;
            inTime &= one.continues() || code != 0;
            if (one.target == Target.COMMAND && one.signal.equals("KILL")) {
                // Nobody may be left to remove the part of a file: the next writer does, once the
                // ranks have noticed that they are orphans.
                command.awaitOrphans(GRACE_MS);
                generate(shared, data);
            }
            List<String> problems = new ArrayList<>(command.leftovers(GRACE_MS));
            problems.addAll(CommandRun.newSegments(segments));
            problems.addAll(problems(command, one.target, one.signal, code));
            if (!inTime) {
                problems.add("the moment was missed: " + command.output());
            }
            if (inTime || last) {
                String said = command.message().isEmpty() ? "" : ", " + command.message();
                String what = "exit code " + code + said;
                table.command(
                        one.fault(), one.moment.label(), one.launcher, what, tookNs, problems);
            }
            return inTime;
        }
    }

    private static List<String> problems(
            CommandRun command, Target target, String signal, int code) {
        int expected =
                switch (target) {
                    case GROUP, COMMAND -> 128 + ProcessSignals.number(signal);
                    case RANKS, MPIRUN -> 1;
                    case JOB -> 0;
                };
        List<String> problems = new ArrayList<>();
        if (code != expected) {
            problems.add("expected exit code " + expected + ": " + command.output());
        }
        if (code != 0 && code != 137 && command.message().isEmpty()) {
            problems.add("no line says why");
        }
        if (command.output().contains("\tat ")) {
            problems.add("a stack trace: " + command.output());
        }
        return problems;
    }

    private static List<Long> pids(CommandRun command, Target target, String launcher) {
        return switch (target) {
            case GROUP -> List.of(-command.pid());
            case COMMAND -> List.of(command.pid());
            case RANKS -> command.ranks(launcher).stream().map(ProcessHandle::pid).toList();
            case MPIRUN -> List.of(command.mpirun().pid());
            case JOB ->
                    Stream.concat(
                                    Stream.of(command.pid()),
                                    command.ranks(launcher).stream().map(ProcessHandle::pid))
                            .toList();
        };
    }

    /** Files are replaced, never written into, so that all cases can share them. */
    private static void link(Path from, Path to) {
        names(from)
                .forEach(
                        name -> {
                            try {
                                Files.createLink(to.resolve(name), from.resolve(name));
                            } catch (IOException e) {
                                throw new UncheckedIOException("cannot link " + name, e);
                            }
                        });
    }

    private static Stream<String> names(Path folder) {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).toList().stream();
        } catch (IOException | UncheckedIOException e) {
            // Files come and go while it is listed.
            return Stream.empty();
        }
    }
}
