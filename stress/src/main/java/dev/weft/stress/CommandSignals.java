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
    private static final List<String> SHAPE = List.of("--gm", "4096", "--gk", "8", "--gn", "4096");

    /** The vector engine needs a compiler that these runs go without. */
    private static final List<String> HOW =
            List.of("--engine", "scalar", "--deadline", "3s", "--algorithm", "ring");

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

    void run(List<String> launchers) {
        CommandFaults.inFolders(
                (shared, data) -> {
                    generate(shared, data);
                    for (String launcher : launchers) {
                        for (Moment moment : Moment.values()) {
                            all(launcher, moment, data);
                        }
                        one(launcher, Moment.MEASURING, Target.JOB, "STOP", data);
                    }
                });
    }

    private void all(String launcher, Moment moment, Path generated) {
        one(launcher, moment, Target.GROUP, "INT", generated);
        one(launcher, moment, Target.COMMAND, "TERM", generated);
        if (launcher.equals("threads")) {
            return;
        }
        one(launcher, moment, Target.COMMAND, "KILL", generated);
        if (moment == Moment.MEASURING || moment == Moment.WRITING) {
            one(launcher, moment, Target.RANKS, "KILL", generated);
            one(launcher, moment, Target.RANKS, "STOP", generated);
        }
        if (launcher.equals("mpi")) {
            one(launcher, moment, Target.MPIRUN, "INT", generated);
            one(launcher, moment, Target.MPIRUN, "KILL", generated);
            one(launcher, moment, Target.MPIRUN, "STOP", generated);
        }
    }

    private static void generate(Path shared, Path data) {
        List<String> arguments = new ArrayList<>(List.of("gen-data", "-n", "2"));
        arguments.addAll(SHAPE);
        arguments.addAll(List.of("--data-dir", data.toString()));
        try (CommandRun command = new CommandRun(shared, data, List.of(), arguments)) {
            if (command.awaitExit() != 0) {
                throw new IllegalStateException("no data: " + command.output());
            }
        }
    }

    /** Tried again where the run had passed the moment before the signal came. */
    private void one(String launcher, Moment moment, Target target, String signal, Path generated) {
        for (int left = TRIES - 1; left >= 0; left--) {
            boolean last = left == 0;
            boolean[] met = {false};
            CommandFaults.inFolders(
                    (shared, data) -> {
                        if (moment != Moment.GENERATING) {
                            link(generated, data);
                        }
                        met[0] = one(launcher, moment, target, signal, shared, data, last);
                    });
            if (met[0]) {
                return;
            }
        }
    }

    private boolean one(
            String launcher,
            Moment moment,
            Target target,
            String signal,
            Path shared,
            Path data,
            boolean last) {
        List<String> arguments = new ArrayList<>(List.of("run", "-n", "2"));
        arguments.addAll(SHAPE);
        arguments.addAll(HOW);
        boolean continues = target == Target.JOB;
        arguments.addAll(moment.iterations(continues));
        arguments.addAll(List.of("--launcher", launcher, "--data-dir", data.toString()));
        List<String> segments = CommandRun.segments();
        try (CommandRun command = new CommandRun(shared, data, List.of("setsid"), arguments)) {
            boolean met = command.await(() -> moment.isNow(command, data));
            long beganNs = System.nanoTime();
            List<Long> pids = pids(command, target, launcher);
            command.noteChildren();
            pids.forEach(pid -> ProcessSignals.send(pid, ProcessSignals.number(signal)));
            if (continues) {
                Injector.sleepMicros(TimeUnit.MILLISECONDS.toMicros(STOPPED_MS));
                pids.forEach(pid -> ProcessSignals.send(pid, ProcessSignals.CONT));
            }
            int code = command.awaitExit();
            long ms = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - beganNs);
            met &= continues || code != 0;
            if (target == Target.COMMAND && signal.equals("KILL")) {
                // Nobody may be left to remove the part of a file: the next writer does.
                generate(shared, data);
            }
            List<String> problems = new ArrayList<>(command.leftovers(GRACE_MS));
            problems.addAll(CommandRun.newSegments(segments));
            problems.addAll(problems(command, target, signal, code));
            if (!met) {
                problems.add("the moment was missed: " + command.output());
            }
            if (met || last) {
                String said = command.message().isEmpty() ? "" : ", " + command.message();
                table.row(
                        "SIG" + signal + (continues ? " and SIGCONT" : "") + " to " + target.words,
                        moment.label(),
                        "command, " + launcher,
                        ("exit code " + code + said).replace("|", "/"),
                        ms,
                        "faults --launcher command",
                        String.join("; ", problems).replace("\n", " / "));
            }
            return met;
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
