package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.data.FolderLock;
import dev.weft.ffi.MpiFamily;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The command line under mpirun, started by it and starting it. */
class MpiRunIT {

    private static final Path WEFT = Path.of("..", "weft").toAbsolutePath().normalize();
    private static final long LIMIT_SECONDS = 120;
    private static final String SMALL =
            "--gm 120 --gk 64 --gn 48 --warmup 1 --iterations 2 --algorithm ring";

    @TempDir Path folder;

    /** The family's mpirun; without one the test is skipped. */
    private static String mpirun(MpiFamily family) {
        boolean open = family == MpiFamily.OPEN_MPI;
        List<String> names =
                open ? List.of("mpirun.openmpi", "mpirun") : List.of("mpirun.mpich", "mpirun");
        for (String name : names) {
            for (String bin : System.getenv("PATH").split(File.pathSeparator)) {
                Path program = Path.of(bin, name);
                if (Files.isExecutable(program)
                        && version(program).contains(open ? "Open MPI" : "HYDRA")) {
                    return program.toString();
                }
            }
        }
        return abort("no mpirun of " + family.label() + " on the path");
    }

    private static String version(Path program) {
        try {
            Process process = new ProcessBuilder(program.toString(), "--version").start();
            return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new AssertionError(program + " cannot be started", e);
        }
    }

    private Process start(List<String> launcher, Map<String, String> environment, String arguments)
            throws IOException {
        List<String> command = new ArrayList<>(launcher);
        command.addAll(List.of(WEFT.toString(), "run"));
        command.addAll(List.of(arguments.split(" ")));
        command.addAll(List.of("--data-dir", folder.resolve("out").toString()));
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("WEFT_SKIP_BUILD", "1");
        builder.environment().remove("WEFT_MPI_LIBRARY");
        builder.environment().putAll(environment);
        builder.redirectOutput(folder.resolve("stdout").toFile());
        builder.redirectError(folder.resolve("stderr").toFile());
        return builder.start();
    }

    private int exitCode(Process process) throws InterruptedException {
        boolean ended = process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS);
        List<ProcessHandle> left = process.descendants().toList();
        left.forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        assertTrue(ended, "the command hangs");
        assertEquals(List.of(), left, "processes left behind");
        return process.exitValue();
    }

    private int run(List<String> launcher, Map<String, String> environment, String arguments)
            throws Exception {
        return exitCode(start(launcher, environment, arguments));
    }

    private static List<String> launcher(MpiFamily family, int ranks) {
        List<String> launcher = new ArrayList<>(List.of(mpirun(family), "-n", "" + ranks));
        if (family == MpiFamily.OPEN_MPI) {
            launcher.addAll(List.of("--oversubscribe", "--bind-to", "none"));
            if ("root".equals(System.getProperty("user.name"))) {
                launcher.add("--allow-run-as-root");
            }
        }
        return launcher;
    }

    private String errors() throws IOException {
        return Files.readString(folder.resolve("stderr"));
    }

    /** What Weft itself says, one line of which tells what is wrong. */
    private String complaint() throws IOException {
        List<String> said = errors().lines().filter(line -> line.startsWith("weft: ")).toList();
        assertEquals(1, said.size(), errors());
        return said.getFirst();
    }

    private void assertRecord(Path json, String hosts) throws IOException {
        String record = Files.readString(json);
        String compact = record.replaceAll("\\s", "");
        assertTrue(compact.contains("\"launcher\":\"mpi\""), record);
        assertTrue(compact.contains("\"hosts\":[" + hosts + "]"), record);
        assertTrue(compact.matches(".*\"progressCpu\":[0-9].*"), record);
        assertTrue(compact.contains("\"passed\":true"), record);
        assertTrue(compact.contains("\"bitwiseEqualToUnfused\":true"), record);
    }

    private void assertOneSummary() throws IOException {
        String printed = Files.readString(folder.resolve("stdout"));
        assertEquals(1, printed.split("Running warmup", -1).length - 1, printed);
    }

    @ParameterizedTest
    @EnumSource
    void everyProcessOfMpirunIsARank(MpiFamily family) throws Exception {
        Path json = folder.resolve("r.json");
        int code = run(launcher(family, 3), Map.of(), SMALL + " --json " + json);
        assertEquals(0, code, errors());
        assertRecord(json, "3");
        assertOneSummary();
    }

    @ParameterizedTest
    @EnumSource
    void theLauncherMpiStartsMpirunItself(MpiFamily family) throws Exception {
        Path json = folder.resolve("r.json");
        Map<String, String> environment =
                Map.of(
                        "WEFT_MPIRUN",
                        mpirun(family),
                        "WEFT_JAVA_OPTS",
                        "-Dweft.mpi.ranks.per.host=1");
        String arguments = "--launcher mpi -n 2 --keep-gathered " + SMALL + " --json " + json;
        assertEquals(0, run(List.of(), environment, arguments), errors());
        assertRecord(json, "1,1");
        assertOneSummary();
    }

    @ParameterizedTest
    @EnumSource
    void anotherNumberOfRanksIsRefused(MpiFamily family) throws Exception {
        int code = run(launcher(family, 2), Map.of(), "-n 3 " + SMALL);
        assertEquals(ExitCode.USAGE, code, errors());
        assertEquals(
                "weft: -n 3, but MPI has started 2 ranks: expected the same number, or no -n",
                complaint());
    }

    @ParameterizedTest
    @EnumSource
    void aFolderInUseIsRefused(MpiFamily family) throws Exception {
        try (FolderLock lock = new FolderLock(folder.resolve("out"))) {
            lock.takeToWrite();
            Map<String, String> environment = Map.of("WEFT_MPIRUN", mpirun(family));
            int code = run(List.of(), environment, "-n 2 --launcher mpi " + SMALL);
            assertEquals(ExitCode.USAGE, code, errors());
            long pid = ProcessHandle.current().pid();
            assertTrue(complaint().contains("in use by process " + pid + ":"), errors());
        }
    }

    @ParameterizedTest
    @EnumSource
    void aMissingHostfileIsRefused(MpiFamily family) throws Exception {
        Map<String, String> environment = Map.of("WEFT_MPIRUN", mpirun(family));
        Path missing = folder.resolve("hosts.txt");
        int code = run(List.of(), environment, "--launcher mpi -n 2 --hostfile " + missing);
        assertEquals(ExitCode.USAGE, code, errors());
        assertEquals("weft: --hostfile " + missing + ": no such file", complaint());
    }

    @Test
    void whatIsNoMpirunIsRefused() throws Exception {
        for (String other : List.of("/bin/false", "/no/such/mpirun")) {
            int code = run(List.of(), Map.of("WEFT_MPIRUN", other), "--launcher mpi -n 2");
            assertEquals(ExitCode.USAGE, code, errors());
            assertTrue(complaint().contains(other), errors());
        }
    }

    @Test
    void optionsOfMpirunNeedIt() {
        Invocation threads = Invocation.of("run", "--launcher", "threads", "--hostfile", "h.txt");
        assertEquals(ExitCode.USAGE, threads.code());
        assertEquals(
                "weft: --hostfile h.txt is for mpirun: it needs --launcher mpi, not threads",
                threads.err().strip());
        Invocation none = Invocation.of("run", "--mpi-args", "--tag-output");
        assertEquals(ExitCode.USAGE, none.code());
        assertTrue(none.err().contains("--mpi-args --tag-output"), none.err());
    }

    @ParameterizedTest
    @EnumSource
    void aKilledRankEndsTheCommand(MpiFamily family) throws Exception {
        Map<String, String> environment =
                Map.of(
                        "WEFT_MPIRUN",
                        mpirun(family),
                        "WEFT_JAVA_OPTS",
                        "-Dweft.mpi.ranks.per.host=1");
        Process command =
                start(
                        List.of(),
                        environment,
                        "--launcher mpi -n 3 --gm 300 --gk 64 --gn 48 --iterations 1000000"
                                + " --algorithm ring --deadline 5s");
        ProcessHandle victim = awaitRank(command, 1);
        List<ProcessHandle> ranks = command.descendants().toList();
        victim.destroyForcibly();
        assertEquals(ExitCode.FAILED, exitCode(command), errors());
        if (family == MpiFamily.OPEN_MPI) {
            assertTrue(errors().contains("rank 1"), errors());
            assertTrue(errors().contains("\nrank  call  end"), "a table: " + errors());
            assertFalse(errors().contains("weft-end"), errors());
        } else {
            // Its launcher ends all ranks before they know who died.
            assertNotEquals("", errors());
        }
        for (ProcessHandle rank : ranks) {
            rank.onExit().get(LIMIT_SECONDS, TimeUnit.SECONDS);
        }
    }

    /** The Java process of a rank, once the run has begun. */
    private ProcessHandle awaitRank(Process command, int rank) throws Exception {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
        while (System.nanoTime() < until && command.isAlive()) {
            for (ProcessHandle child : command.descendants().toList()) {
                if (child.info().command().orElse("").endsWith("/java")
                        && isRank(environment(child), rank)
                        && Files.readString(folder.resolve("stdout")).contains("warmup")) {
                    return child;
                }
            }
            TimeUnit.MILLISECONDS.sleep(5);
        }
        throw new AssertionError("rank " + rank + " never came: " + errors());
    }

    private static boolean isRank(String environment, int rank) {
        return environment.contains("OMPI_COMM_WORLD_RANK=" + rank + "\0")
                || environment.contains("PMI_RANK=" + rank + "\0");
    }

    private static final String LONG =
            "--launcher mpi --gm 300 --gk 64 --gn 48 --iterations 1000000 --algorithm ring ";

    /** By the name of the signal; a negative number is a group of processes. */
    private static void signal(String name, long... pids) throws Exception {
        List<String> command = new ArrayList<>(List.of("kill", "-" + name, "--"));
        for (long pid : pids) {
            command.add(Long.toString(pid));
        }
        assertEquals(0, new ProcessBuilder(command).start().waitFor(), command.toString());
    }

    private Process startLong(MpiFamily family, String arguments) throws Exception {
        Path shared = Files.createDirectory(folder.resolve("shared"));
        // A group of its own, as a terminal gives to each command.
        return start(
                List.of("setsid"),
                Map.of("WEFT_MPIRUN", mpirun(family), "WEFT_SHM_DIR", shared.toString()),
                LONG + arguments);
    }

    private static ProcessHandle parent(ProcessHandle rank) {
        ProcessHandle parent = rank.parent().orElseThrow();
        return parent.info().command().orElse("").matches(".*(mpirun|orterun|mpiexec).*")
                ? parent
                : parent(parent);
    }

    /** Ours, and Open MPI's segments of this job. */
    private void assertNothingIsLeft(String jobOrNull) throws Exception {
        assertEquals(List.of(), names(folder.resolve("shared")));
        if (jobOrNull != null && Files.isDirectory(Path.of("/dev/shm"))) {
            String number = "." + Long.toHexString(Long.parseLong(jobOrNull)) + ".";
            List<String> left =
                    names(Path.of("/dev/shm")).stream()
                            .filter(name -> name.contains(number))
                            .toList();
            assertEquals(List.of(), left);
        }
    }

    private static List<String> names(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).toList();
        }
    }

    /** Of another process; empty where it is gone, or is just becoming another program. */
    private static String environment(ProcessHandle process) {
        try {
            return Files.readString(Path.of("/proc", Long.toString(process.pid()), "environ"));
        } catch (IOException e) {
            return "";
        }
    }

    /** Open MPI's number of the rank's job; null under MPICH. */
    private static String job(ProcessHandle rank) {
        return Stream.of(environment(rank).split("\0"))
                .filter(variable -> variable.startsWith("PMIX_NAMESPACE="))
                .map(variable -> variable.substring(variable.indexOf('=') + 1))
                .findFirst()
                .orElse(null);
    }

    @ParameterizedTest
    @EnumSource
    void anInterruptFromATerminalLeavesNothing(MpiFamily family) throws Exception {
        Process command = startLong(family, "-n 2");
        String job = job(awaitRank(command, 1));
        signal("INT", -command.pid());
        assertEquals(130, exitCode(command), errors());
        assertEquals("weft: ended by SIGINT", complaint());
        assertNothingIsLeft(job);
    }

    @ParameterizedTest
    @EnumSource
    void aKilledMpirunIsNamed(MpiFamily family) throws Exception {
        Process command = startLong(family, "-n 2 --deadline 5s");
        ProcessHandle rank = awaitRank(command, 1);
        String job = job(rank);
        signal("KILL", parent(rank).pid());
        assertEquals(ExitCode.FAILED, exitCode(command), errors());
        assertEquals("weft: mpirun was ended by signal 9", complaint());
        rank.onExit().get(LIMIT_SECONDS, TimeUnit.SECONDS);
        assertNothingIsLeft(job);
    }

    @Test
    void ranksThatAreAllStoppedAreGivenUp() throws Exception {
        Process command = startLong(MpiFamily.OPEN_MPI, "-n 2 --deadline 2s");
        ProcessHandle rank = awaitRank(command, 1);
        String job = job(rank);
        signal("STOP", parent(rank).descendants().mapToLong(ProcessHandle::pid).toArray());
        assertEquals(ExitCode.FAILED, exitCode(command), errors());
        assertEquals("weft: ranks 0 and 1 hang: each is stopped", complaint());
        assertNothingIsLeft(job);
    }

    @Test
    void aStoppedMpirunIsGivenUp() throws Exception {
        Process command = startLong(MpiFamily.OPEN_MPI, "-n 2 --deadline 2s");
        ProcessHandle rank = awaitRank(command, 1);
        String job = job(rank);
        signal("STOP", parent(rank).pid());
        assertEquals(ExitCode.FAILED, exitCode(command), errors());
        assertTrue(
                complaint().matches("weft: mpirun \\(process [0-9]+\\) is stopped: .*"), errors());
        assertNothingIsLeft(job);
    }

    /** Too few for mpirun, which says nothing and waits. */
    @Test
    void anMpirunThatStartsNothingIsGivenUp() throws Exception {
        List<String> few = List.of("sh", "-c", "ulimit -n 24; exec \"$0\" \"$@\"");
        Map<String, String> environment = Map.of("WEFT_MPIRUN", mpirun(MpiFamily.OPEN_MPI));
        int code = run(few, environment, LONG + "-n 2 --deadline 1s");
        assertEquals(ExitCode.FAILED, code, errors());
        assertFalse(complaint().isEmpty());
    }

    @Test
    void aRankThatIsKilledBeforeTheMeetingIsNamedAtTheDeadline() throws Exception {
        Process command = startLong(MpiFamily.OPEN_MPI, "-n 3 --deadline 5s");
        ProcessHandle victim = null;
        while (victim == null && command.isAlive()) {
            for (ProcessHandle child : command.descendants().toList()) {
                victim = isRank(environment(child), 2) ? child : victim;
            }
        }
        assertNotNull(victim, errors());
        victim.destroyForcibly();
        assertEquals(ExitCode.FAILED, exitCode(command), errors());
        assertEquals("weft: rank 2 never started", complaint());
        assertNothingIsLeft(null);
    }

    @Test
    void theSignalThatEndsARankIsNamed() throws Exception {
        Process command = startLong(MpiFamily.OPEN_MPI, "-n 2 --deadline 5s");
        ProcessHandle rank = awaitRank(command, 1);
        String job = job(rank);
        signal("INT", rank.pid());
        assertEquals(ExitCode.FAILED, exitCode(command), errors());
        assertTrue(complaint().startsWith("weft: rank 1 was ended by SIGINT"), errors());
        assertNothingIsLeft(job);
    }

    /** mpirun does not tell that what it wrote was lost. */
    @Test
    void lostOutputOfRanksIsAFailure() throws Exception {
        assumeTrue(Files.exists(Path.of("/dev/full")), "no /dev/full here");
        List<String> toFull = List.of("sh", "-c", "exec \"$0\" \"$@\" >/dev/full");
        Map<String, String> environment = Map.of("WEFT_MPIRUN", mpirun(MpiFamily.OPEN_MPI));
        int code = run(toFull, environment, "--launcher mpi -n 2 --json - " + SMALL);
        assertEquals(ExitCode.FAILED, code, errors());
        assertEquals("weft: cannot write to standard output: No space left on device", complaint());
    }

    @Test
    void anInterruptedMpirunIsTheCauseAndNoRankIs() throws Exception {
        Process command = startLong(MpiFamily.OPEN_MPI, "-n 2 --deadline 5s");
        ProcessHandle rank = awaitRank(command, 1);
        String job = job(rank);
        signal("INT", parent(rank).pid());
        assertEquals(ExitCode.FAILED, exitCode(command), errors());
        assertTrue(complaint().startsWith("weft: mpirun ended the ranks"), errors());
        assertNothingIsLeft(job);
    }
}
