package dev.weft.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.Gpu;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/** {@code weft bench gpu}: what is refused, before anything is measured. */
class GpuCommandTest {

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @TempDir Path folder;

    private int run(String... arguments) {
        return new CommandLine(new BenchCommand())
                .setOut(new PrintWriter(out))
                .setErr(new PrintWriter(err))
                .execute(arguments);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "gpu --only ranks | --only 'ranks': expected some of overlap, fp8, shared,"
                        + " calls, queue, rows, host, blocks, helion",
                "gpu --only calls,x | --only 'x': expected some of overlap, fp8, shared,"
                        + " calls, queue, rows, host, blocks, helion",
                "gpu --rows 0 | --rows 0: expected numbers from 1 to 18",
                "gpu --rows 1,19 | --rows 19: expected numbers from 1 to 18",
                "gpu --rows one | 'one' is not an int",
                "gpu --iterations 0 | --iterations 0: expected 1 to 100000",
                "gpu --cores 2 | '--cores'",
            })
    void wrongUsageNamesWhatWasGiven(String arguments, String expected) {
        assertEquals(2, run(arguments.split(" ")), err.toString());
        assertTrue(err.toString().lines().findFirst().orElse("").contains(expected), err::toString);
        assertEquals("", out.toString());
    }

    @Test
    void withoutAGpuItIsRefusedInOneLine() {
        assumeTrue(Gpu.unavailable().isPresent(), "this machine has a GPU");
        Path record = folder.resolve("bench.json");
        assertEquals(2, run("gpu", "--quick", "--rows", "1,5", "--json", record.toString()));
        assertEquals(1, err.toString().lines().count(), err.toString());
        assertTrue(err.toString().startsWith("weft: no GPU bench: "), err.toString());
        assertTrue(
                err.toString().contains(Gpu.unavailable().orElseThrow().lines().toList().get(0)),
                err.toString());
        assertEquals("", out.toString());
        assertFalse(Files.exists(record));
    }

    @Test
    void helpNamesTheItemsAndExitCodes() {
        assertEquals(0, run("gpu", "--help"), err.toString());
        assertTrue(out.toString().contains("queue (calls two deep)"), out.toString());
        assertTrue(out.toString().contains("./weft bench gpu --quick"), out.toString());
        assertTrue(out.toString().contains("Exit codes:"), out.toString());
    }
}
