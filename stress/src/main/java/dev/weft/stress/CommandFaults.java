package dev.weft.stress;

import dev.weft.files.Folders;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * What befalls the command itself: signals, ranks that die under it, no room on the disk or in
 * shared memory, no more file handles. It must end, say why in one line, and leave nothing.
 */
final class CommandFaults {

    private static final long GRACE_MS = 3_000;

    /** Long enough to be interrupted. */
    private static final String LONG_RUN =
            "--gm 512 --gk 512 --gn 256 --iterations 100000 --launcher processes --deadline 1500ms";

    private static final String SHORT_RUN = "--gm 256 --gk 256 --gn 64 --iterations 2";

    /** Enough for Java to start, and not for what follows, or not for all of it. */
    private static final int[] HANDLES = {10, 12, 16};

    private final FaultTable table;

    CommandFaults(FaultTable table) {
        this.table = table;
    }

    void run() {
        new CommandSignals(table).run(launchers());
        rankSignalled("kill", ProcessSignals.KILL);
        rankSignalled("freeze", ProcessSignals.STOP);
        inFolders((shared, data) -> littleRoom("full shared memory", shared, shared, data));
        inFolders((shared, data) -> littleRoom("full disk", data, shared, data));
        inFolders(this::fullAtTheEnd);
        for (int handles : HANDLES) {
            fewHandles("threads", handles);
            fewHandles("processes", handles);
        }
    }

    private static List<String> launchers() {
        List<String> all = new ArrayList<>(List.of("threads", "processes"));
        if (MpirunRanks.unavailable().isEmpty()) {
            all.add("mpi");
        }
        return all;
    }

    /** The work of one case, in two folders that are removed afterwards. */
    interface Trial {
        void on(Path shared, Path data) throws IOException;
    }

    static void inFolders(Trial trial) {
        try {
            Path folder = Files.createTempDirectory("weft-faults");
            try {
                trial.on(
                        Files.createDirectory(folder.resolve("shared")),
                        Files.createDirectory(folder.resolve("data")));
            } finally {
                Folders.delete(folder);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("cannot prepare a case: " + e.getMessage(), e);
        }
    }

    /** How the command may end. */
    private enum Expected {
        /** An error that names rank 1. */
        RANK_ERROR,
        /** An error, whatever it is. */
        ERROR,
        /** An error, or none. */
        ANY;

        boolean allows(int code, CommandRun command) {
            boolean explained = !command.message().isEmpty() && !command.output().contains("\tat ");
            return switch (this) {
                case RANK_ERROR -> code == 1 && command.message().contains("rank 1");
                case ERROR -> (code == 1 || code == 2) && explained;
                case ANY -> code == 0 || (code == 1 || code == 2) && explained;
            };
        }
    }

    /**
     * One row of the table.
     *
     * @param meanwhile what is done to the command while it runs
     */
    private void row(
            String fault,
            String phase,
            String launcher,
            CommandRun started,
            Expected expected,
            Consumer<CommandRun> meanwhile) {
        try (CommandRun command = started) {
            meanwhile.accept(command);
            long beganNs = System.nanoTime();
            int code = command.awaitExit();
            long tookNs = System.nanoTime() - beganNs;
            List<String> problems = new ArrayList<>(command.leftovers(GRACE_MS));
            if (!expected.allows(code, command)) {
                problems.add("exit code " + code + ", " + command.output());
            }
            String what = code == 0 ? "right" : command.message();
            table.command(fault, phase, launcher, what, tookNs, problems);
        }
    }

    private static List<String> arguments(String options, Path data) {
        List<String> all = new ArrayList<>(List.of("run", "-n", "2", "--algorithm", "ring"));
        all.addAll(List.of(options.split(" ")));
        all.addAll(List.of("--data-dir", data.toString()));
        return all;
    }

    /** A rank that dies or stops under the command, which must name it. */
    private void rankSignalled(String name, int signal) {
        inFolders(
                (shared, data) ->
                        row(
                                name + " rank 1",
                                "calls",
                                "processes",
                                new CommandRun(shared, data, List.of(), arguments(LONG_RUN, data)),
                                Expected.RANK_ERROR,
                                command -> signalRank(command, signal)));
    }

    private static void signalRank(CommandRun command, int signal) {
        command.awaitLine("Running warmup");
        ProcessHandle rank =
                command.awaitChildren(2).stream()
                        .max(Comparator.comparingLong(ProcessHandle::pid))
                        .orElseThrow();
        Injector.sleepMicros(TimeUnit.MILLISECONDS.toMicros(1_500));
        ProcessSignals.send(rank.pid(), signal);
    }

    /** A small file system for one of the two folders. */
    private void littleRoom(String name, Path small, Path shared, Path data) throws IOException {
        mounted(
                name,
                "256k",
                small,
                () -> {
                    List<String> arguments = arguments(SHORT_RUN + " --launcher processes", data);
                    refused(name, "allocation", shared, data, arguments);
                });
    }

    /** Data and outputs fit, the record does not. */
    private void fullAtTheEnd(Path shared, Path data) throws IOException {
        Path small = Files.createDirectory(data.resolve("small"));
        mounted(
                "full disk at the end",
                "4k",
                small,
                () -> {
                    Path record = small.resolve("record.json");
                    List<String> arguments = arguments(SHORT_RUN + " --json " + record, data);
                    refused("full disk", "record", shared, small, arguments);
                    if (Files.exists(record)) {
                        List<String> problem = List.of("a record is there");
                        table.command("full disk", "record", "threads", "", 0, problem);
                    }
                });
    }

    private void refused(
            String fault, String phase, Path shared, Path data, List<String> arguments) {
        CommandRun command = new CommandRun(shared, data, List.of(), arguments);
        row(fault, phase, "command", command, Expected.ERROR, running -> {});
    }

    private void mounted(String name, String size, Path folder, Runnable work) throws IOException {
        if (!done("mount", "-t", "tmpfs", "-o", "size=" + size, "weft", folder.toString())) {
            table.line("skipped " + name + ": mounting needs root");
            return;
        }
        try {
            work.run();
        } finally {
            done("umount", "-l", folder.toString());
        }
    }

    private void fewHandles(String launcher, int handles) {
        List<String> limited = List.of("sh", "-c", "ulimit -n " + handles + "; exec \"$0\" \"$@\"");
        inFolders(
                (shared, data) ->
                        row(
                                handles + " file handles",
                                "start",
                                launcher,
                                new CommandRun(
                                        shared,
                                        data,
                                        limited,
                                        arguments(SHORT_RUN + " --launcher " + launcher, data)),
                                Expected.ANY,
                                command -> {}));
    }

    private static boolean done(String... command) throws IOException {
        try {
            return new ProcessBuilder(command).redirectErrorStream(true).start().waitFor() == 0;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
