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

/**
 * What befalls the command itself: signals, ranks that die under it, no room on the disk or in
 * shared memory, no more file handles. It must end, say why in one line, and leave nothing.
 */
final class CommandFaults {

    private static final long GRACE_MS = 3_000;

    /** Long enough to be interrupted. */
    private static final List<String> LONG_RUN =
            List.of("--gm", "512", "--gk", "512", "--gn", "256", "--iterations", "100000");

    private static final List<String> SHORT_RUN =
            List.of("--gm", "256", "--gk", "256", "--gn", "64", "--iterations", "2");

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
        withLittleRoom("full shared memory", "256k", true);
        withLittleRoom("full disk", "256k", false);
        fullAtTheEnd();
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

    private static List<String> arguments(List<String> shape, Path data, String... more) {
        List<String> all = new ArrayList<>(List.of("run", "-n", "2", "--algorithm", "ring"));
        all.addAll(shape);
        all.addAll(List.of("--data-dir", data.toString()));
        all.addAll(List.of(more));
        return all;
    }

    /** A rank that dies or stops under the command, which must name it. */
    private void rankSignalled(String name, int signal) {
        inFolders(
                (shared, data) -> {
                    List<String> arguments =
                            arguments(
                                    LONG_RUN,
                                    data,
                                    "--launcher",
                                    "processes",
                                    "--deadline",
                                    "1500ms");
                    try (CommandRun command = new CommandRun(shared, data, List.of(), arguments)) {
                        command.awaitLine("Running warmup");
                        ProcessHandle rank =
                                command.awaitChildren(2).stream()
                                        .max(Comparator.comparingLong(ProcessHandle::pid))
                                        .orElseThrow();
                        pause(1_500);
                        long began = System.nanoTime();
                        ProcessSignals.send(rank.pid(), signal);
                        int code = command.awaitExit();
                        List<String> problems = new ArrayList<>(command.leftovers(GRACE_MS));
                        if (code != 1 || !command.message().contains("rank 1")) {
                            problems.add("exit code " + code + ", " + command.message());
                        }
                        tell(
                                name + " rank 1",
                                "calls",
                                "processes",
                                command.message(),
                                began,
                                problems);
                    }
                });
    }

    /** A small file system for one of the two folders. */
    private void withLittleRoom(String name, String size, boolean forShared) {
        inFolders(
                (shared, data) -> {
                    Path small = forShared ? shared : data;
                    if (!done("mount", "-t", "tmpfs", "-o", "size=" + size, "weft", "" + small)) {
                        table.line("skipped " + name + ": mounting needs root");
                        return;
                    }
                    try {
                        refused(
                                name,
                                "allocation",
                                shared,
                                data,
                                arguments(SHORT_RUN, data, "--launcher", "processes"));
                    } finally {
                        done("umount", "-l", small.toString());
                    }
                });
    }

    /** Data and outputs fit, the record does not. */
    private void fullAtTheEnd() {
        inFolders(
                (shared, data) -> {
                    Path small = Files.createDirectory(data.resolve("small"));
                    if (!done("mount", "-t", "tmpfs", "-o", "size=4k", "weft", "" + small)) {
                        table.line("skipped full disk at the end: mounting needs root");
                        return;
                    }
                    try {
                        Path record = small.resolve("record.json");
                        refused(
                                "full disk",
                                "record",
                                shared,
                                small,
                                arguments(SHORT_RUN, data, "--json", record.toString()));
                        if (Files.exists(record)) {
                            table.row(
                                    "full disk",
                                    "record",
                                    "threads",
                                    "",
                                    -1,
                                    "faults --launcher command",
                                    "a record is there");
                        }
                    } finally {
                        done("umount", "-l", small.toString());
                    }
                });
    }

    private void fewHandles(String launcher, int handles) {
        inFolders(
                (shared, data) -> {
                    String few = "ulimit -n " + handles + "; exec \"$0\" \"$@\"";
                    List<String> arguments = arguments(SHORT_RUN, data, "--launcher", launcher);
                    long began = System.nanoTime();
                    try (CommandRun command =
                            new CommandRun(shared, data, List.of("sh", "-c", few), arguments)) {
                        int code = command.awaitExit();
                        List<String> problems = new ArrayList<>(command.leftovers(GRACE_MS));
                        if (code < 0
                                || code > 2
                                || code > 0 && command.message().isEmpty()
                                || command.output().contains("\tat ")) {
                            problems.add("exit code " + code + ", " + command.output());
                        }
                        tell(
                                handles + " file handles",
                                "start",
                                launcher,
                                code == 0 ? "right" : command.message(),
                                began,
                                problems);
                    }
                });
    }

    private void refused(
            String name, String phase, Path shared, Path data, List<String> arguments) {
        long began = System.nanoTime();
        try (CommandRun command = new CommandRun(shared, data, List.of(), arguments)) {
            int code = command.awaitExit();
            List<String> problems = new ArrayList<>(command.leftovers(GRACE_MS));
            if (code < 1
                    || code > 2
                    || command.message().isEmpty()
                    || command.output().contains("\tat ")) {
                problems.add("exit code " + code + ", " + command.output());
            }
            tell(name, phase, "command", command.message(), began, problems);
        }
    }

    private void tell(
            String fault,
            String phase,
            String launcher,
            String what,
            long beganNs,
            List<String> problems) {
        table.row(
                fault,
                phase,
                "command, " + launcher,
                what.replace("|", "/"),
                TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - beganNs),
                "faults --launcher command",
                String.join("; ", problems).replace("\n", " / "));
    }

    private static void pause(long ms) {
        Injector.sleepMicros(TimeUnit.MILLISECONDS.toMicros(ms));
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
