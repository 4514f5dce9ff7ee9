package dev.weft.cli.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

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
                "-n 4 --groups 3 | --groups 3: expected a number that divides the 4 ranks",
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

    @ParameterizedTest
    @ValueSource(strings = {"", "--tiled --m 512", "--rows --algorithm ring"})
    void aSimulatedGatherIsPredicted(String options) {
        Invocation run = gather(("-r sim -v trn2 -n 4 " + options).strip());
        assertEquals(0, run.code(), run.err());
        run.assertPrints("Simulated on trn2", "(sim:trn2, ", " ms (predicted)", "GB/s per rank");
    }

    @Test
    void helpHasExamples() {
        Invocation help = gather("--help");
        assertEquals(0, help.code());
        assertTrue(help.out().contains("./weft gather"), help.out());
    }
}
