package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cli.console.ExitCode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Commands in a JVM of their own whose standard output takes nothing. */
class StandardOutputIT {

    private static final File FULL = new File("/dev/full");

    @TempDir Path folder;

    @ParameterizedTest
    @ValueSource(
            strings = {
                "run " + ChildProcess.SHORT + "--json - --data-dir ",
                "run " + ChildProcess.SHORT + "--data-dir ",
                "sweep -v trn2 --gm 64 --gk 64 --gn 64 --json -",
                "report --serve no.json",
                "completion",
                "--help",
                "--version",
                "doctor"
            })
    void lostOutputIsAFailureThatSaysWhy(String arguments)
            throws IOException, InterruptedException {
        assumeTrue(FULL.exists(), "no /dev/full here");
        String all =
                arguments.endsWith(" ")
                        ? arguments + folder.resolve("out")
                        : arguments.replace("no.json", sweep().toString());
        ChildProcess process =
                ChildProcess.weft(folder, all).to(ProcessBuilder.Redirect.to(FULL)).run();
        assertEquals(ExitCode.FAILED, process.code());
        assertEquals(
                "weft: cannot write to standard output: No space left on device\n", process.err());
    }

    private Path sweep() {
        Path record = folder.resolve("sweep.json");
        String arguments = "sweep -v trn2 --gm 64 --gk 64 --gn 64 --json " + record;
        assertEquals(0, Invocation.ofWords(arguments).code());
        return record;
    }

    @Test
    void whoReadsOnlyTheFirstLinesHearsNothing() throws IOException, InterruptedException {
        ChildProcess process =
                ChildProcess.weft(folder, "completion").to(ProcessBuilder.Redirect.PIPE).start();
        process.process().getInputStream().close();
        assertEquals(141, process.code(), "as of a program that SIGPIPE has ended");
        assertEquals("", process.err());
    }
}
