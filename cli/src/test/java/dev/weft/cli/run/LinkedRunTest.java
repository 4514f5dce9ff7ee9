package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.process.EveryOtherCase;
import dev.weft.report.RecordReader;
import dev.weft.report.RunRecord;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs whose ranks are joined by links of a set rate. */
class LinkedRunTest {

    @TempDir Path folder;

    private Invocation run(String arguments) {
        List<String> command = Invocation.shortRun(arguments, folder.resolve("out"));
        return Invocation.of(command.toArray(String[]::new));
    }

    /** What a rank sends cannot arrive before its link has carried it, with any plan. */
    @EveryOtherCase
    @ParameterizedTest
    @ValueSource(
            strings = {
                "-n 2 --gm 256 --gk 64 --gn 40 --algorithm mesh-push",
                "-n 3 --shards 128,0,200 --gk 64 --gn 40 --launcher processes --algorithm"
                        + " bidirectional-ring",
                "-n 2 --op matmul-reduce-scatter --gm 64 --gk 50 --gn 128",
                "-n 4 --groups 2 --gm 256 --gk 64 --gn 20 --algorithm ring"
            })
    void aLinkIsNoFasterThanItsRate(String arguments) throws IOException {
        Path json = folder.resolve("r.json");
        Invocation run = run(arguments + " --link 8mbit --json " + json);
        assertEquals(0, run.code(), run.err());
        run.assertPrints("each on a link of 8mbit");
        RunRecord record = RecordReader.read(json).run();
        assertEquals(8_000_000, record.execution().linkBitsPerSecond());
        // Half of 256 rows of 128 bytes, or of 64 rows of 512, goes to another rank: 16 KiB.
        double leastUs = 16_384;
        assertTrue(record.views().commOnly().median() > leastUs, run.out());
        assertTrue(record.views().sequential().median() > leastUs, run.out());
        assertTrue(record.views().pipelined().median() > leastUs, run.out());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "--link 8|'8' is not a rate: expected for example 600mbit",
                "--link 2000gbit|expected at most 1000gbit",
                "--link 1gbit --algorithm direct|direct, which reads the memory of other ranks",
                "--link 1gbit -r cuda|--link 1gbit with --run-mode cuda",
                "--link 1gbit --launcher mpi|--link 1gbit with --launcher mpi",
                "--link 1gbit -r sim -v Ascend910B1|--link"
            })
    void linksThatCannotBeAreRefused(String argumentsAndMessage) {
        String[] parts = argumentsAndMessage.split("\\|");
        run(parts[0]).assertRefused(parts[1]);
        assertFalse(Files.exists(folder.resolve("out")));
    }

    @Test
    void theDemoIsARunOnALink() {
        Invocation demo = Invocation.of("demo", "--data-dir", folder.resolve("out").toString());
        assertEquals(0, demo.code(), demo.err());
        demo.assertPrints(
                "$ ./weft run -n 2 --gm 2048 --gk 2048 --gn 1024 --link ",
                "only the link's rate is set",
                "each on a link of ",
                "[SUCCESS]");
    }
}
