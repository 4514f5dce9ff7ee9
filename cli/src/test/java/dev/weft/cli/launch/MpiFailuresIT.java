package dev.weft.cli.launch;

import static dev.weft.cli.ChildProcess.ENDLESS;
import static dev.weft.cli.ChildProcess.SHORT;
import static dev.weft.cli.ChildProcess.signal;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.SharedMemory;
import dev.weft.cli.console.ExitCode;
import dev.weft.ffi.MpiFamily;
import dev.weft.process.EveryOtherCase;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Failures under mpirun: ranks or mpirun killed, stopped or never up, and output lost. */
@Execution(ExecutionMode.CONCURRENT)
class MpiFailuresIT extends MpiCommands {

    /** A group's signal ends the probe too; else only the probe was ended. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "kill -TERM $PPID $$ | 143 | weft: ended by SIGTERM",
                "kill -TERM $$ | 1 | weft: .*/mpirun --version was ended by signal 15"
            })
    void aSignalDuringTheProbeOfMpirunIsTold(String script, int code, String complaint)
            throws Exception {
        Path mpirun = Files.writeString(folder.resolve("mpirun"), "#!/bin/sh\n" + script + "\n");
        assertTrue(mpirun.toFile().setExecutable(true));
        ChildProcess run =
                ChildProcess.weft(folder, "run --launcher mpi --data-dir " + folder.resolve("out"))
                        .environment("WEFT_MPIRUN", mpirun)
                        .run();
        assertEquals(code, run.code(), run::toString);
        assertTrue(run.complaint().matches(complaint), run::toString);
    }

    /** The Java process of rank 1, once the run has begun. */
    private static ProcessHandle awaitRank(ChildProcess command) throws Exception {
        return command.awaitRank(1, () -> command.out().contains("warmup"));
    }

    @EveryOtherCase
    @ParameterizedTest
    @EnumSource
    void aKilledRankEndsTheCommand(MpiFamily family) throws Exception {
        ChildProcess command =
                launch(family, "-n 3 --deadline 5s " + ENDLESS).javaOptions(HOSTS_OF_ONE).start();
        ProcessHandle victim = awaitRank(command);
        List<ProcessHandle> ranks = command.process().descendants().toList();
        victim.destroyForcibly();
        assertEquals(ExitCode.FAILED, command.code(), command::toString);
        if (family == MpiFamily.OPEN_MPI) {
            assertTrue(command.err().contains("rank 1"), command::toString);
            assertTrue(command.err().contains("\nrank  call  end"), command::toString);
            assertFalse(command.err().contains("weft-rank"), command::toString);
        } else {
            // Its launcher ends all ranks before they know who died.
            assertNotEquals("", command.err());
        }
        ChildProcess.awaitEnd(ranks);
    }

    private ChildProcess startEndless(MpiFamily family, String arguments) throws Exception {
        Path shared = Files.createDirectory(folder.resolve("shared"));
        Path temporary = Files.createDirectory(folder.resolve("tmp"));
        // A group of its own, as a terminal gives to each command.
        return launch(family, ENDLESS + arguments)
                .environment(SharedMemory.VARIABLE, shared)
                .environment("TMPDIR", temporary)
                .under(List.of("setsid"))
                .interruptible()
                .start();
    }

    private static ProcessHandle mpirun(ProcessHandle rank) {
        ProcessHandle parent = rank.parent().orElseThrow();
        return parent.info().command().orElse("").matches(".*(mpirun|orterun|mpiexec).*")
                ? parent
                : mpirun(parent);
    }

    /** Ours, and Open MPI's segments of this job. */
    private void assertNothingIsLeft(String jobOrNull) throws Exception {
        assertEquals(List.of(), names(folder.resolve("shared")));
        // Open MPI has a folder for each of its daemons there.
        assertEquals(List.of(), names(folder.resolve("tmp")));
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

    /** Open MPI's number of the rank's job; null under MPICH. */
    private static String job(ProcessHandle rank) {
        return ChildProcess.environment(rank).stream()
                .filter(variable -> variable.startsWith("PMIX_NAMESPACE="))
                .map(variable -> variable.substring(variable.indexOf('=') + 1))
                .findFirst()
                .orElse(null);
    }

    @EveryOtherCase
    @ParameterizedTest
    @EnumSource
    void anInterruptFromATerminalLeavesNothing(MpiFamily family) throws Exception {
        ChildProcess command = startEndless(family, "-n 2");
        String job = job(awaitRank(command));
        signal("INT", -command.pid());
        assertEquals(130, command.code(), command::toString);
        assertEquals("weft: ended by SIGINT", command.complaint());
        assertNothingIsLeft(job);
    }

    @EveryOtherCase
    @ParameterizedTest
    @EnumSource
    void aKilledMpirunIsNamed(MpiFamily family) throws Exception {
        ChildProcess command = startEndless(family, "-n 2 --deadline 5s");
        ProcessHandle rank = awaitRank(command);
        String job = job(rank);
        signal("KILL", mpirun(rank).pid());
        assertFailed("weft: mpirun was ended by signal 9", command);
        ChildProcess.awaitEnd(List.of(rank));
        assertNothingIsLeft(job);
    }

    /**
     * @param complaint a pattern
     */
    private static void assertFailed(String complaint, ChildProcess command) throws Exception {
        assertEquals(ExitCode.FAILED, command.code(), command::toString);
        assertTrue(command.complaint().matches(complaint), command::toString);
    }

    /** What happens to a job of Open MPI, and what the command says to it. */
    private enum Fate {
        RANKS_STOPPED(
                "weft: ranks 0 and 1 hang: each is stopped; rank 0 gave no sign of life for [0-9]+"
                        + " ms; a longer --deadline than 5000 ms waits longer") {
            @Override
            void befall(ProcessHandle rank) throws Exception {
                long[] all = mpirun(rank).descendants().mapToLong(ProcessHandle::pid).toArray();
                signal("STOP", all);
            }
        },
        MPIRUN_STOPPED("weft: mpirun \\(process [0-9]+\\) is stopped: .*") {
            @Override
            void befall(ProcessHandle rank) throws Exception {
                signal("STOP", mpirun(rank).pid());
            }
        },
        RANK_INTERRUPTED("weft: rank 1 was ended by SIGINT.*") {
            @Override
            void befall(ProcessHandle rank) throws Exception {
                signal("INT", rank.pid());
            }
        },
        MPIRUN_INTERRUPTED("weft: mpirun ended the ranks.*") {
            @Override
            void befall(ProcessHandle rank) throws Exception {
                signal("INT", mpirun(rank).pid());
            }
        };

        final String complaint;

        Fate(String complaint) {
            this.complaint = complaint;
        }

        /** To its first other rank, to mpirun, or to all. */
        abstract void befall(ProcessHandle rank) throws Exception;
    }

    @EveryOtherCase
    @ParameterizedTest
    @EnumSource
    void whatEndedTheJobIsTold(Fate fate) throws Exception {
        ChildProcess command = startEndless(MpiFamily.OPEN_MPI, "-n 2 --deadline 5s");
        ProcessHandle rank = awaitRank(command);
        String job = job(rank);
        fate.befall(rank);
        assertFailed(fate.complaint, command);
        assertNothingIsLeft(job);
    }

    /** Too few for mpirun, which says nothing and waits. */
    @Test
    void anMpirunThatStartsNothingIsGivenUp() throws Exception {
        assertFailed(
                "weft: .+",
                launch(MpiFamily.OPEN_MPI, ENDLESS + "-n 2 --deadline 1s")
                        .after("ulimit -n 24")
                        .run());
    }

    @Test
    void aRankThatIsKilledBeforeTheMeetingIsNamedAtTheDeadline() throws Exception {
        ChildProcess command = startEndless(MpiFamily.OPEN_MPI, "-n 3 --deadline 5s");
        List<ProcessHandle> victim = new ArrayList<>();
        while (victim.isEmpty() && command.process().isAlive()) {
            command.process()
                    .descendants()
                    .filter(child -> ChildProcess.isRank(child, 2))
                    .forEach(victim::add);
        }
        victim.forEach(ProcessHandle::destroyForcibly);
        assertFailed("weft: rank 2 never came up", command);
        assertNothingIsLeft(null);
    }

    /** By a process that is killed while it writes, as the first rank may be. */
    @Test
    void whatAKilledRankHasHalfWrittenIsRemoved() throws Exception {
        Path reports = Files.createDirectory(folder.resolve("reports"));
        ChildProcess half =
                ChildProcess.java(
                                folder,
                                "dev.weft.cli.data.TemporaryFilesIT",
                                List.of(reports.resolve("r.html").toString()))
                        .to(ProcessBuilder.Redirect.PIPE)
                        .start();
        assertEquals('+', half.process().getInputStream().read(), "half of it is written");
        half.process().toHandle().destroyForcibly();
        half.code();
        assertEquals(1, names(reports).size());
        String options = "-n 2 --mpi-args --no-such-option --report " + reports.resolve("r.html");
        assertFailed(
                "weft: mpirun ended with exit code [0-9]+ before any rank had come up.*",
                launch(MpiFamily.OPEN_MPI, SHORT + options).run());
        assertEquals(List.of(), names(reports));
    }

    /** mpirun does not tell that what it wrote was lost. */
    @Test
    void lostOutputOfRanksIsAFailure() throws Exception {
        File full = new File("/dev/full");
        assumeTrue(full.exists(), "no /dev/full here");
        assertFailed(
                "weft: cannot write to standard output: No space left on device",
                launch(MpiFamily.OPEN_MPI, "-n 2 --json - " + SHORT)
                        .to(ProcessBuilder.Redirect.to(full))
                        .run());
    }
}
