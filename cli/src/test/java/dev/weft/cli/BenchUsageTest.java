package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.console.ExitCode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@code weft bench}: what is refused, before anything is measured. */
class BenchUsageTest {

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "bench | no bench given: try cpu",
                "bench npu | 'npu'",
                "bench cpu --only products | --only 'products': expected some of product, fused",
                "bench cpu --only product,x | --only 'x': expected some of product, fused",
                "bench cpu --plots /nowhere | --plots /nowhere: expected a folder",
                "bench auto-ranks --problems 60 | --problems 60: expected 0 to 59",
                "bench cpu --cores 0 | --cores 0: expected 1 to",
                "bench cpu --cores 100000 | --cores 100000: expected 1 to",
                "bench cpu --json /nowhere/r.json | --json /nowhere/r.json: expected a file"
            })
    void wrongUsageIsOneLine(String arguments, String expected) {
        Invocation run = Invocation.of(arguments.split(" "));
        assertEquals(ExitCode.USAGE, run.code(), run.err());
        assertEquals(1, run.err().lines().count(), run.err());
        assertTrue(run.err().contains(expected), run.err());
        assertEquals("", run.out());
    }

    @Test
    void helpNamesTheItems() {
        Invocation help = Invocation.of("bench", "cpu", "--help");
        assertEquals(0, help.code(), help.err());
        assertTrue(help.out().contains("product, fused, overlap, lab, predict,"), help.out());
        assertTrue(help.out().contains("./weft bench cpu --quick"), help.out());
    }
}
