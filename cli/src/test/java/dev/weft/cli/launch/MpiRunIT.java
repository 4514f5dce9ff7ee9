package dev.weft.cli.launch;

import static dev.weft.cli.ChildProcess.SHORT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.Invocation;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.data.FolderLock;
import dev.weft.ffi.MpiFamily;
import dev.weft.process.EveryOtherCase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The command line under mpirun, started by it and starting it. */
@Execution(ExecutionMode.CONCURRENT)
class MpiRunIT extends MpiCommands {

    /** mpirun starts the commands. */
    private ChildProcess.Setup launched(MpiFamily family, int ranks, String arguments) {
        return weft(arguments).under(launcher(family, ranks));
    }

    /** The words of the family's mpirun; without one the test is skipped. */
    static List<String> launcher(MpiFamily family, int ranks) {
        List<String> launcher = new ArrayList<>(List.of(mpirun(family), "-n", "" + ranks));
        if (family == MpiFamily.OPEN_MPI) {
            launcher.addAll(List.of("--oversubscribe", "--bind-to", "none"));
            if ("root".equals(System.getProperty("user.name"))) {
                launcher.add("--allow-run-as-root");
            }
        }
        return launcher;
    }

    private static void assertRecord(Path json, String hosts) throws IOException {
        String record = Files.readString(json);
        String compact = record.replaceAll("\\s", "");
        assertTrue(compact.contains("\"launcher\":\"mpi\""), record);
        assertTrue(compact.contains("\"hosts\":[" + hosts + "]"), record);
        assertTrue(compact.matches(".*\"progressCpu\":[0-9].*"), record);
        assertTrue(compact.contains("\"passed\":true"), record);
        assertTrue(compact.contains("\"bitwiseEqualToUnfused\":true"), record);
    }

    private static void assertOneSummary(ChildProcess run) {
        assertEquals(1, run.out().split("Running warmup", -1).length - 1, run::toString);
    }

    @ParameterizedTest
    @EnumSource
    void everyProcessOfMpirunIsARank(MpiFamily family) throws Exception {
        Path json = folder.resolve("r.json");
        ChildProcess run = launched(family, 2, SHORT + "--json " + json).run();
        assertEquals(0, run.code(), run::toString);
        assertRecord(json, "2");
        assertOneSummary(run);
    }

    @EveryOtherCase
    @ParameterizedTest
    @EnumSource
    void theLauncherMpiStartsMpirunItself(MpiFamily family) throws Exception {
        Path json = folder.resolve("r.json");
        ChildProcess run =
                launch(family, "-n 2 --keep-gathered " + SHORT + "--json " + json)
                        .javaOptions(HOSTS_OF_ONE)
                        .run();
        assertEquals(0, run.code(), run::toString);
        assertRecord(json, "1,1");
        assertOneSummary(run);
    }

    /** On one host, and on hosts of one rank each. */
    @EveryOtherCase
    @ParameterizedTest
    @ValueSource(
            strings = {
                "--op matmul-reduce-scatter -n 3 --shards 40,0,19 --k-parts 0,50,14 --gn 33",
                "--op matmul-allreduce -n 2 --gm 50 --gk 64 --gn 33 --order by-rank"
            })
    void productsAreSummed(String arguments) throws Exception {
        Path json = folder.resolve("r.json");
        String rest = " --warmup 1 --iterations 2 --json " + json;
        ChildProcess together = launch(MpiFamily.OPEN_MPI, arguments + rest).run();
        assertEquals(0, together.code(), together::toString);
        boolean three = arguments.contains("-n 3");
        assertRecord(json, three ? "3" : "2");
        ChildProcess apart =
                launch(MpiFamily.MPICH, arguments + rest).javaOptions(HOSTS_OF_ONE).run();
        assertEquals(0, apart.code(), apart::toString);
        assertRecord(json, three ? "1,1,1" : "1,1");
        assertOneSummary(apart);
    }

    private static void assertRefused(String complaint, ChildProcess run) throws Exception {
        assertEquals(ExitCode.USAGE, run.code(), run::toString);
        assertTrue(run.complaint().contains(complaint), run::toString);
    }

    @Test
    void anotherNumberOfRanksIsRefused() throws Exception {
        assertRefused(
                "weft: -n 3, but MPI has started 2 ranks: expected the same number, or no -n",
                launched(MpiFamily.MPICH, 2, "-n 3 " + SHORT).run());
    }

    @Test
    void aFolderInUseIsRefused() throws Exception {
        try (FolderLock lock = new FolderLock(folder.resolve("out"))) {
            lock.takeToWrite();
            assertRefused(
                    "in use by process " + ProcessHandle.current().pid() + ":",
                    launch(MpiFamily.OPEN_MPI, "-n 2 " + SHORT).run());
        }
    }

    @Test
    void aMissingHostfileIsRefused() throws Exception {
        Path missing = folder.resolve("hosts.txt");
        assertRefused(
                "weft: --hostfile " + missing + ": no such file",
                launch(MpiFamily.MPICH, "-n 2 --hostfile " + missing).run());
    }

    @ParameterizedTest
    @ValueSource(strings = {"/bin/false", "/no/such/mpirun"})
    void whatIsNoMpirunIsRefused(String other) throws Exception {
        ChildProcess.Setup setup = weft("--launcher mpi -n 2");
        assertRefused(other, setup.environment("WEFT_MPIRUN", other).run());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "OMPI_COMM_WORLD_RANK=x",
                "PMI_RANK=-1",
                "PMI_SIZE=0",
                "PMI_RANK=2 PMI_SIZE=2"
            })
    void anEnvironmentThatCannotBeIsRefused(String variables) throws Exception {
        ChildProcess.Setup setup = ChildProcess.weft(folder, "run");
        for (String variable : variables.split(" ")) {
            setup.environment(variable.split("=")[0], variable.split("=")[1]);
        }
        ChildProcess run = setup.run();
        assertRefused(variables.replace(" ", " and ") + " in the environment: expected", run);
        assertEquals(1, run.err().lines().count(), run::toString);
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
}
