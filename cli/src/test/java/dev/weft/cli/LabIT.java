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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The command on the hosts of a lab: over links, and when one of them is cut. */
class LabIT {

    private static final Path WEFT = Path.of("..", "weft").toAbsolutePath().normalize();
    private static final long LIMIT_SECONDS = 180;
    private static final long LEAVE_SECONDS = 30;

    @TempDir Path folder;

    private record Outcome(int code, String out, String err) {}

    @BeforeEach
    void aLabCanBeMade() throws Exception {
        Outcome trial = lab("true");
        assumeTrue(trial.code == 0, "no lab here: " + trial.err.strip());
    }

    private void assumeMpirun() throws Exception {
        assumeTrue(lab("mpirun --version").code == 0, "no mpirun on the path");
    }

    /** Runs a line of the shell in the first of two hosts; afterwards no lab may be left. */
    private Outcome lab(String line) throws Exception {
        Process process = start(line);
        boolean ended = process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS);
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        Outcome outcome =
                new Outcome(
                        ended ? process.exitValue() : -1,
                        Files.readString(folder.resolve("stdout")),
                        Files.readString(folder.resolve("stderr")));
        assertTrue(ended, () -> "the lab hangs: " + outcome);
        assertEquals(List.of(), spaces(process.pid()), () -> "left behind by " + outcome);
        return outcome;
    }

    private Process start(String line) throws IOException {
        ProcessBuilder builder =
                new ProcessBuilder(
                                WEFT.toString(),
                                "lab",
                                "--rate",
                                "100mbit",
                                "--",
                                "bash",
                                "-c",
                                line)
                        .redirectOutput(folder.resolve("stdout").toFile())
                        .redirectError(folder.resolve("stderr").toFile());
        builder.environment().put("WEFT_SKIP_BUILD", "1");
        builder.environment().put("WEFT", WEFT.toString());
        return builder.start();
    }

    private static List<Path> spaces(long lab) throws IOException {
        Path all = Path.of("/run/netns");
        if (!Files.isDirectory(all)) {
            return List.of();
        }
        try (Stream<Path> spaces = Files.list(all)) {
            return spaces.filter(s -> s.getFileName().toString().startsWith("weft-" + lab + "-"))
                    .toList();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"ring", "mesh-pull"})
    void aRunAcrossHostsPasses(String algorithm) throws Exception {
        assumeMpirun();
        Path record = folder.resolve("record.json");
        Outcome run =
                lab(
                        "$WEFT run --launcher mpi -n 4 --mpi-args '--map-by ppr:2:node' --shards"
                                + " 100,0,99,1 --gk 128 --gn 64 --warmup 1 --iterations 2"
                                + " --algorithm "
                                + algorithm
                                + " --data-dir "
                                + folder.resolve("out")
                                + " --json "
                                + record);
        assertEquals(0, run.code, run::toString);
        assertTrue(run.out.contains("4 ranks (mpi, hosts of 2+2)"), run::toString);
        assertEquals(1, run.out.lines().filter(l -> l.contains("Verification PASSED")).count());
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
        assumeMpirun();
        Path out = folder.resolve("out");
        Outcome run =
                lab(
                        "(until [ $(cat /sys/class/net/eth0/statistics/tx_bytes) -gt 20000000 ];"
                                + " do sleep 0.1; done;"
                                + " $WEFT_LAB_LINK down 2) & $WEFT run --launcher mpi -n 2"
                                + " --mpi-args '--map-by node' --deadline 5s --gm 512 --gk 512"
                                + " --gn 512 --iterations 100000 --data-dir "
                                + out
                                + COUNT_PROCESSES);
        assertEquals(1, run.code, run::toString);
        List<String> said = run.err.lines().filter(line -> line.startsWith("weft: ")).toList();
        assertTrue(
                said.stream()
                        .anyMatch(
                                line ->
                                        line.startsWith(
                                                "weft: rank 1 hangs: it gave no sign of life;"
                                                        + " rank 0 waits for it")),
                run::toString);
        assertTrue(run.out.contains("left on the other host: ."), run::toString);
    }

    @Test
    void aKilledLabLeavesNoProcessAndNoNetwork() throws Exception {
        Path told = folder.resolve("pid");
        Process lab =
                start("echo $$ >" + told + ".part; mv " + told + ".part " + told + "; sleep 1000");
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(LEAVE_SECONDS);
        while (!Files.exists(told)) {
            assertTrue(lab.isAlive() && System.nanoTime() < until, "the command does not start");
            TimeUnit.MILLISECONDS.sleep(10);
        }
        ProcessHandle inside =
                ProcessHandle.of(Long.parseLong(Files.readString(told).strip())).orElseThrow();
        assertEquals(3, spaces(lab.pid()).size(), "two hosts and the switch");
        try {
            lab.destroyForcibly();
            inside.onExit().get(LEAVE_SECONDS, TimeUnit.SECONDS);
            until = System.nanoTime() + TimeUnit.SECONDS.toNanos(LEAVE_SECONDS);
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
