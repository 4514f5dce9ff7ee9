package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import dev.weft.process.EnvironmentVariable;
import dev.weft.tune.Effort;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** Environment variables that a user may set, checked before a command does anything. */
public final class Settings {

    private static final String SHARED_MEMORY = "WEFT_SHM_DIR";

    private Settings() {}

    /** Refuses values that a command would stumble over only after it has written files. */
    public static void check(Map<String, String> environment) {
        for (String variable : List.of(Effort.MEASURE_MS, Effort.TRIAL_MS)) {
            UsageException.checked("", () -> EnvironmentVariable.ms(environment, variable, 0));
        }
        String shared = environment.getOrDefault(SHARED_MEMORY, "");
        Path folder = Path.of(shared);
        if (!shared.isEmpty() && !(Files.isDirectory(folder) && Files.isWritable(folder))) {
            throw new UsageException(
                    "environment variable %s is %s: expected a folder that can be written to",
                    SHARED_MEMORY, shared);
        }
    }
}
