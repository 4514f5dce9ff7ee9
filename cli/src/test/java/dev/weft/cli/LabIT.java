package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** The command on the hosts of a lab: over links, and when one of them is cut. */
@Execution(ExecutionMode.CONCURRENT)
class LabIT {

    private static final long LEAVE_SECONDS = 30;

    @TempDir Path folder;

    @BeforeEach
    void aLabCanBeMade() throws Exception {
        ChildProcess trial = lab("echo made; mpirun --version");
        assumeTrue(trial.out().startsWith("made"), "no lab here: " + trial.err().strip());
        assumeTrue(trial.code() == 0, "no mpirun on the path");
    }

    /** Runs a line of the shell in the first of two hosts; afterwards no lab may be left. */
    private ChildProcess lab(String line) throws Exception {
        ChildProcess process = start(line);
        process.code();
        assertEquals(List.of(), spaces(process.pid()), () -> "left behind by " + process);
        return process;
    }

    private ChildProcess start(String line) throws IOException {
        String weft = ChildProcess.SCRIPT.toString();
        return ChildProcess.of(
                        folder, List.of(weft, "lab", "--rate", "100mbit", "--", "bash", "-c", line))
                .environment("WEFT", weft)
                .start();
    }

    private static List<Path> spaces(long lab) throws IOException {
        Path all = Path.of("/run/netns");
        // Nobody who may not read it has made a lab.
        if (!Files.isReadable(all)) {
            return List.of();
        }
        try (Stream<Path> spaces = Files.list(all)) {
            return spaces.filter(s -> s.getFileName().toString().startsWith("weft-" + lab + "-"))
                    .toList();
        }
    }

    @Test
    void aRunAcrossHostsPasses() throws Exception {
        Path record = folder.resolve("record.json");
        ChildProcess run =
                lab(
                        """
                        $WEFT run --launcher mpi -n 4 \
                        --shards 100,0,99,1 --gk 128 --gn 64 --engine scalar --warmup 1 \
                        --iterations 2 --algorithm ring --data-dir %s --json %s\
                        """
                                .formatted(folder.resolve("out"), record));
        assertEquals(0, run.code(), run::toString);
        assertTrue(run.out().contains("4 ranks (mpi, hosts of 2+2)"), run::toString);
        assertEquals(1, run.out().lines().filter(l -> l.contains("Verification PASSED")).count());
        String json = Files.readString(record);
        assertTrue(json.replaceAll("\\s", "").contains("\"hosts\":[2,2]"), json);
    }

    /**
     * Only what is in the lab at the end beside the shell itself; a cut-off host gets ten seconds.
     */
    private static final String COUNT_PROCESSES =
            "; code=$?; for ((i = 0; i < 100; i++)); do left=$(ip netns pids $WEFT_LAB-2);"
                    + " [ -n \"$left\" ] || break; sleep 0.1; done;"
                    + " echo \"left on the other host: $left.\"; exit $code";

    /**
     * The link goes down once rows have crossed it, in the middle of rounds without end; nothing
     * but a deadline can notice.
     */
    @Test
    void aCutLinkEndsTheRunWithAnErrorThatNamesThePeer() throws Exception {
        ChildProcess run =
                lab(
                        """
                        (until [ $(cat /sys/class/net/eth0/statistics/tx_bytes) -gt 5000000 ]; \
                        do sleep 0.1; done; $WEFT_LAB_LINK down 2) & \
                        $WEFT run --launcher mpi -n 2 --deadline 6s \
                        --gm 512 --gk 512 --gn 16 --algorithm ring --engine scalar \
                        --iterations 100000 --data-dir %s\
                        """
                                        .formatted(folder.resolve("out"))
                                + COUNT_PROCESSES);
        assertEquals(1, run.code(), run::toString);
        List<String> said = run.err().lines().filter(line -> line.startsWith("weft: ")).toList();
        assertTrue(
                said.stream()
                        .anyMatch(
                                line ->
                                        line.startsWith(
                                                "weft: rank 1 hangs: it gave no sign of life;"
                                                        + " rank 0 waits for it")),
                run::toString);
        assertTrue(run.out().contains("left on the other host: ."), run::toString);
    }

    @Test
    void aKilledLabLeavesNoProcessAndNoNetwork() throws Exception {
        Path told = folder.resolve("pid");
        ChildProcess lab =
                start("echo $$ >" + told + ".part; mv " + told + ".part " + told + "; sleep 1000");
        lab.await(() -> Files.exists(told));
        ProcessHandle inside =
                ProcessHandle.of(Long.parseLong(Files.readString(told).strip())).orElseThrow();
        assertEquals(3, spaces(lab.pid()).size(), "two hosts and the switch");
        try {
            lab.process().destroyForcibly();
            inside.onExit().get(LEAVE_SECONDS, TimeUnit.SECONDS);
            long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(LEAVE_SECONDS);
            while (!spaces(lab.pid()).isEmpty()
                    || Files.exists(Path.of("/run/weft-" + lab.pid()))) {
                assertTrue(System.nanoTime() < until, () -> "the lab stays");
                TimeUnit.MILLISECONDS.sleep(10);
            }
        } finally {
            inside.destroyForcibly();
        }
    }
}
