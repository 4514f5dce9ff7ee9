package dev.weft.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
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
                "bench nosuch | unknown command 'nosuch': expected one of cpu, gpu, ascend; see",
                "bench cp | unknown command 'cp', did you mean cpu? (see 'weft bench --help')",
                "bench cpu product | unknown argument 'product': expected options only; see",
                "bench cpu --only products | --only 'products': expected some of product, fused",
                "bench cpu --only product,x | --only 'x': expected some of product, fused",
                "bench cpu --cores 0 | --cores 0: expected 1 to",
                "bench cpu --cores 100000 | --cores 100000: expected 1 to",
                "bench cpu --json /nowhere/r.json | --json /nowhere/r.json: expected a file"
            })
    void wrongUsageIsOneLine(String arguments, String expected) {
        Invocation run = Invocation.of(arguments.split(" "));
        assertEquals(2, run.code(), run.err());
        assertEquals(1, run.err().lines().count(), run.err());
        assertTrue(run.err().contains(expected), run.err());
        assertEquals("", run.out());
    }

    /** Of every option; a blank stands between values, {@code ~} is an empty one. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "bench cpu --only | nonsense ~ NaN 0 -1",
                "bench cpu --cores | nonsense ~ 99999999999999999999 1e400 NaN -1 1.5 0",
                "bench cpu --json | /nowhere/file / ~",
                "bench gpu --only | nonsense ~ NaN 0 -1",
                "bench gpu --rows | nonsense ~ 99999999999999999999 NaN 1,,2 1,-2 1;2 -1",
                "bench gpu --iterations | nonsense ~ 99999999999999999999 1e400 NaN -1 1.5 0",
                "bench gpu --json | /nowhere/file / ~",
                "bench ascend --only | nonsense ~ NaN 0 -1",
                "bench ascend --rows | nonsense ~ 99999999999999999999 NaN 1,,2 1,-2 1;2 -1 9",
                "bench ascend --limit | nonsense ~ 99999999999999999999 1e400 NaN -1 1.5 0",
                "bench ascend --json | /nowhere/file / ~"
            })
    void wrongValuesAreRefusedInOneLine(String option, String values) {
        String name = option.substring(option.lastIndexOf(' ') + 3);
        for (String value : values.split(" ")) {
            List<String> arguments = new ArrayList<>(List.of(option.split(" ")));
            arguments.add(value.equals("~") ? "" : value);
            Invocation run = Invocation.of(arguments.toArray(String[]::new));
            assertEquals(2, run.code(), arguments + run.err());
            assertEquals(1, run.err().lines().count(), arguments + run.err());
            assertTrue(run.err().contains(name), arguments + run.err());
            assertEquals("", run.out());
        }
    }

    @Test
    void helpNamesTheItems() {
        Invocation help = Invocation.of("bench", "cpu", "--help");
        assertEquals(0, help.code(), help.err());
        String words = help.out().replaceAll("\\s+", " "); // wherever lines break
        assertTrue(
                words.contains("product, fused, gather, overlap, rows, blocks, reduce, experts,"),
                words);
        assertTrue(help.out().contains("./weft bench cpu --quick"), help.out());
    }
}
