package dev.weft.compat.command;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.Invocation;
import dev.weft.cli.Main;
import dev.weft.cli.SharedMemory;
import dev.weft.cli.console.ExitCode;
import dev.weft.process.EveryOtherCase;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The source systems' commands with ranks in processes of their own, whoever starts them. */
@Execution(ExecutionMode.CONCURRENT)
class SourceLaunchIT {

    private static final String RING = "ring -n 3 --m 9 --k 40 --n-local 11 --seed 7";
    private static final String FGCC = "fgcc -n 4 --groups 2 --lnc 2 --m 8 --k 33 --n 20";
    private static final String GATHER = "gather -n 2 --tiled --m 256 --w 16 --lnc 2";
    private static final String HELION = "helion -n 2 --m 32 --n 24 --k 64 --splits-per-rank 2";

    @TempDir Path folder;

    private Path json;
    private Path html;
    private Path trace;

    @BeforeEach
    void nameFiles() {
        json = folder.resolve("x.json");
        html = folder.resolve("x.html");
        trace = folder.resolve("t.json");
    }

    private String files() {
        return " --warmup 1 --iterations 2 --json %s --report %s --trace %s"
                .formatted(json, html, trace);
    }

    private static List<String> rankLines(String out) {
        return out.lines().filter(line -> line.startsWith("[rank ")).toList();
    }

    private void assertFiles(String launcher) throws Exception {
        String record = Files.readString(json);
        assertTrue(record.contains("\"launcher\" : \"" + launcher + "\""), record);
        assertTrue(record.contains("\"samplesUs\""), record);
        assertTrue(Files.readString(html).contains("weft-data"), "a page");
        assertTrue(Files.readString(trace).contains("traceEvents"), "a trace");
    }

    @EveryOtherCase
    @ParameterizedTest
    @ValueSource(strings = {RING, FGCC, GATHER, HELION})
    void processesFindWhatThreadsFind(String command) throws Exception {
        Invocation processes = Invocation.ofWords(command + " --launcher processes" + files());
        assertEquals(0, processes.code(), processes.err());
        assertFiles("processes");
        Invocation threads = Invocation.ofWords(command + " --warmup 0 --iterations 1");
        assertEquals(rankLines(threads.out()), rankLines(processes.out()));
        assertEquals(1, processes.out().split("\\[SUCCESS\\]", -1).length - 1, processes.out());
    }

    @Test
    void whatRanksRefuseIsWrongUsage() {
        Invocation run = Invocation.ofWords("fgcc -n 3 --launcher processes");
        run.assertRefused("tp_degree 3: expected an even number");
    }

    static void assumeMpi() {
        assumeTrue(
                Stream.of(System.getenv("PATH").split(File.pathSeparator))
                        .anyMatch(bin -> Files.isExecutable(Path.of(bin, "mpirun"))),
                "no mpirun on the path");
    }

    private ChildProcess.Setup weft(String arguments) {
        return weft(folder, arguments);
    }

    static ChildProcess.Setup weft(Path folder, String arguments) {
        List<String> command = new ArrayList<>(List.of(ChildProcess.SCRIPT.toString()));
        command.addAll(List.of(arguments.strip().split(" ")));
        return ChildProcess.of(folder, command);
    }

    @EveryOtherCase
    @ParameterizedTest
    @ValueSource(strings = {FGCC, GATHER, HELION})
    void mpiStartsTheRanks(String command) throws Exception {
        assumeMpi();
        ChildProcess run = weft(command + " --launcher mpi" + files()).run();
        assertEquals(0, run.code(), run::toString);
        assertFiles("mpi");
        assertEquals(1, run.out().split("\\[SUCCESS\\]", -1).length - 1, run::toString);
    }

    @Test
    void hostsOfOneRankEach() throws Exception {
        assumeMpi();
        ChildProcess run =
                weft(RING + " --launcher mpi" + files())
                        .javaOptions("-Dweft.mpi.ranks.per.host=1")
                        .run();
        assertEquals(0, run.code(), run::toString);
        assertFiles("mpi");
        assertEquals(3, rankLines(run.out()).size(), run::toString);
        assertTrue(run.out().contains("hosts of 1+1+1"), run::toString);
        assertEquals(1, run.out().split("\\[SUCCESS\\]", -1).length - 1, run::toString);
    }

    @Test
    void mpiRanksThatRefuseTellOnce() throws Exception {
        assumeMpi();
        ChildProcess run = weft("fgcc -n 3 --launcher mpi").run();
        assertEquals(ExitCode.USAGE, run.code(), run::toString);
        assertTrue(run.complaint().contains("tp_degree 3: expected an even"), run::toString);
    }

    @EveryOtherCase
    @ParameterizedTest
    @ValueSource(strings = {"ring --m 9 --k 40", "helion --m 32 --n 24 --k 64"})
    void launchedRanksJoin(String command) throws Exception {
        List<String> words = new ArrayList<>(List.of("launch", "-n", "2", "--"));
        words.addAll(ChildProcess.java());
        words.add(Main.class.getName());
        words.addAll(List.of((command + " --launcher joined" + files()).split(" ")));
        ChildProcess run = ChildProcess.weft(folder, words).run();
        assertEquals(0, run.code(), run::toString);
        assertEquals(2, rankLines(run.out()).size(), run::toString);
        assertFiles("processes");
    }

    /** As torchrun would start them: no starter of Weft's, and only its variables. */
    @Test
    void ranksThatAnotherLauncherStartsMeet() throws Exception {
        SharedMemory shared = SharedMemory.create();
        List<ChildProcess> ranks = new ArrayList<>();
        for (int rank = 0; rank < 3; rank++) {
            ranks.add(
                    ChildProcess.weft(
                                    Files.createDirectory(folder.resolve("rank-" + rank)),
                                    "gather --launcher joined --json - --iterations 2")
                            .environment(SharedMemory.VARIABLE, shared.folder())
                            .environment("LOCAL_RANK", rank)
                            .environment("RANK", rank)
                            .environment("WORLD_SIZE", 3)
                            .environment("MASTER_ADDR", "localhost")
                            .environment("MASTER_PORT", 29500)
                            .start());
        }
        for (ChildProcess rank : ranks) {
            assertEquals(0, rank.code(), rank::toString);
        }
        assertTrue(ranks.getFirst().out().contains("\"ranks\" : 3"), ranks.getFirst().out());
        shared.assertEmpty();
    }

    @Test
    void aMasterOnAnotherHostIsToldOfMpi() throws Exception {
        ChildProcess rank =
                ChildProcess.weft(folder, "gather --launcher joined")
                        .environment("RANK", 0)
                        .environment("WORLD_SIZE", 2)
                        .environment("MASTER_ADDR", "192.0.2.1")
                        .environment("MASTER_PORT", 29500)
                        .start();
        assertEquals(ExitCode.USAGE, rank.code(), rank::toString);
        assertTrue(rank.complaint().contains("ranks on several hosts need MPI"), rank.complaint());
    }

    @Test
    void ranksOfWeftMeet() throws Exception {
        SharedMemory shared = SharedMemory.create();
        List<String> words =
                new ArrayList<>(List.of("launch", "--nnodes", "1", "--nproc-per-node", "4", "--"));
        words.addAll(ChildProcess.java());
        words.addAll(
                List.of(Main.class.getName(), "gather", "--launcher", "joined", "--json", "-"));
        words.addAll(List.of("--tiled", "--lnc", "2", "--iterations", "2", "--groups", "2"));
        ChildProcess process =
                ChildProcess.weft(folder, words)
                        .environment(SharedMemory.VARIABLE, shared.folder())
                        .run();
        assertEquals(0, process.code(), process::toString);
        shared.assertEmpty();
        assertTrue(process.out().contains("\"ranks\" : 4"), process.out());
        assertEquals(1, process.out().split("weft.gather/1", -1).length - 1, "one rank prints");
    }
}
