package dev.weft.compat.command;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.Main;
import dev.weft.cli.console.ExitCode;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** {@code weft gather}: what it prints, writes and refuses. */
class GatherTest {

    @TempDir Path folder;

    private static Invocation gather(String arguments) {
        return Invocation.ofWords("gather " + arguments);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-n 8",
                "-n 1",
                "--tiled -n 8",
                "--tiled -n 4 --m 512 --k 64 --lnc 2 --dtype fp16",
                "--tiled -n 4 --m 64 --k 64 --lnc 2",
                "-n 6 --groups 2 --h 5 --w 7 --dtype fp32 --algorithm ring",
                "-n 8 --replica-groups 0,2,4,6/1,3,5,7 --h 16 --w 8",
                "-n 6 --replica-groups 4,0/5,1,3 --h 5 --w 7 --algorithm ring",
                "--tiled -n 4 --m 256 --k 8 --lnc 2 --replica-groups 2,0,1,3",
                "--tp-degree 4 --h 5 --w 7",
                "--rows -n 3 --m 10 --k 3 --replica-groups 2,1",
                "--rows -n 4 --m 100 --k 33 --algorithm mesh-pull"
            })
    void gathersAndVerifies(String arguments) {
        Invocation run = gather(arguments + " --warmup 1 --iterations 2");
        assertEquals(0, run.code(), run.err());
        assertTrue(run.out().startsWith("[SUCCESS] AllGather "), run.out());
        assertTrue(run.out().contains("exact on every rank"), run.out());
        assertTrue(run.out().contains("GB/s per rank"), run.out());
        assertTrue(run.out().contains("of the rate of a plain copy"), run.out());
    }

    @Test
    void theOutcomeAsJson() throws IOException {
        Path file = folder.resolve("g.json");
        Invocation run =
                gather("--tiled -n 2 --m 256 --k 16 --lnc 2 --iterations 3 --quiet --json " + file);
        assertEquals(0, run.code(), run.err());
        assertEquals("", run.out());
        String json = Files.readString(file);
        for (String part :
                new String[] {
                    "\"schema\" : \"weft.gather/1\"",
                    "\"kind\" : \"tiled\"",
                    "\"exact\" : true",
                    "\"programs\" : 2",
                    "\"receivedBytesPerRank\" : 8192",
                    "\"gather\"",
                    "\"plainCopy\"",
                    "\"gbPerSecond\""
                }) {
            assertTrue(json.contains(part), part + " in " + json);
        }
        Invocation standard = gather("-n 2 --h 4 --w 4 --iterations 1 --json -");
        assertTrue(standard.out().startsWith("{"), standard.out());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "-n 0 | --n-ranks 0: expected 1 to 4096",
                "-n 2 --h 129 | H is 129: expected at most 128 rows",
                "-n 2 --h 4 --w 4 --on-chip-bytes 31 | on-chip capacity of 31",
                "-n 2 --tiled --m 130 | M is 130: expected at most 128 rows or a multiple of 128",
                "-n 2 --tiled --m 384 --lnc 2 | 3 tiles of 128 rows (M is 384) for 2 LNC programs",
                "-n 2 --lnc 2 | --lnc 2: expected 1 or more, with --tiled",
                "-n 2 --tiled --rows | --tiled and --rows",
                "-n 4 --tp-degree 2 | --tp-degree 2: a group has 4 ranks, expected the same number",
                "-n 4 --groups 3 | --groups 3: expected a number that divides the 4 ranks",
                "-n 4 --replica-groups 0,1/1,2 | rank 1 is twice in replica groups 0,1/1,2",
                "-n 4 --replica-groups 0,4 | rank 4 in replica groups 0,4: expected ranks 0 to 3",
                "-n 4 --replica-groups 0;1 | replica group \"0;1\": expected ranks with commas",
                "-n 4 --groups 2 --replica-groups 0,1/2,3 | --groups 2 with --replica-groups",
                "--h 0 | --h/--m 0: expected 1 to",
                "--dtype int8 | unknown dtype 'int8'",
                "--algorithm tree | unknown algorithm 'tree'",
                "--iterations 0 | --iterations 0: expected 1 to",
                "--launcher ssh | --launcher 'ssh': expected one of threads, processes, mpi, joined",
                "--launcher joined --deadline 1m | --deadline 1m with --launcher joined",
                "--json /nowhere/g.json | --json /nowhere/g.json: expected a file in a folder"
            })
    void refusesWithOneLine(String arguments, String expected) {
        gather(arguments).assertRefused(expected);
    }

    /** The data that every rank must end with differs from what they gather in one bit. */
    @Test
    void oneWrongByteFails() {
        CommandLine parser = Main.commandLine();
        GatherCommand command = parser.getSubcommands().get("gather").getCommand();
        try (Arena arena = Arena.ofShared()) {
            Matrix whole = Matrix.allocate(arena, DType.BF16, 4, 16);
            for (int rank = 0; rank < 2; rank++) {
                new NormalData(5, rank).fill(whole.block(0, 4, rank * 8L, 8));
            }
            byte right = whole.data().get(ValueLayout.JAVA_BYTE, 77);
            whole.data().set(ValueLayout.JAVA_BYTE, 77, (byte) (right ^ 1));
            command.wholes.put("0 5", whole);
            Invocation run =
                    Invocation.on(
                            parser, "gather -n 2 --h 4 --w 8 --seed 5 --iterations 1".split(" "));
            assertEquals(ExitCode.FAILED, run.code(), run.out());
            run.assertPrints("[FAILED] AllGather sb2sb", "WRONG on some rank");
            assertTrue(run.err().contains("wrong bytes on rank 0"), run.err());
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "--tiled --m 512",
                "--rows --algorithm ring",
                "--groups 2",
                "--replica-groups 2,0,1"
            })
    void aSimulatedGatherIsPredicted(String options) {
        Invocation run = gather(("-r sim -v trn2 -n 4 " + options).strip());
        assertEquals(0, run.code(), run.err());
        run.assertPrints("Simulated on trn2", "(sim:trn2, ", " ms (predicted)", "GB/s per rank");
    }

    /** What one wide group takes, and a narrow one beside it. */
    @Test
    void everyGroupIsPriced() {
        Invocation run = gather("-r sim -v trn2 -n 7 --replica-groups 4,0/5,1,3,2");
        assertEquals(0, run.code(), run.err());
        run.assertPrints("  ranks 4,0: ", "  ranks 5,1,3,2: ", "1 of 7 ranks in none");
    }

    /** A rank in no group is in no group of the record either, and not among its ranks. */
    @Test
    void ranksInNoGroupAreNotInThePage() throws IOException {
        Path trace = folder.resolve("t.json");
        Invocation run =
                gather(
                        "-n 6 --replica-groups 4,0/5,1,3 --h 5 --w 7 --iterations 1 --trace "
                                + trace);
        assertEquals(0, run.code(), run.err());
        run.assertPrints("6 ranks in 2 groups, 1 of 6 ranks in none", "rank 5 ");
        assertFalse(run.out().contains("rank 2 "), run.out());
        String events = Files.readString(trace);
        assertTrue(events.contains("rank 5"), events);
        assertFalse(events.contains("rank 2"), events);
    }

    @Test
    void helpHasExamples() {
        Invocation help = gather("--help");
        assertEquals(0, help.code());
        help.assertPrints("./weft gather", "--replica-groups 0,2,4,6/1,3,5,7", "-r cuda");
    }
}
