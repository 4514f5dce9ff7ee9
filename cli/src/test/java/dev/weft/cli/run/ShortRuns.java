package dev.weft.cli.run;

import dev.weft.cli.Invocation;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;

/** Runs in this JVM, with few rounds and their files in a folder of the test. */
abstract class ShortRuns {

    @TempDir Path folder;

    Invocation run(String arguments) {
        List<String> command = Invocation.shortRun(arguments, folder.resolve("out"));
        return Invocation.of(command.toArray(String[]::new));
    }
}
