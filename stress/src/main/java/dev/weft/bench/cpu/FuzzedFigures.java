package dev.weft.bench.cpu;

import dev.weft.bench.peers.Lab;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/** What the bench reads, opened to the fuzzer. Any thread may call it. */
public final class FuzzedFigures {

    private FuzzedFigures() {}

    public static void read(Path record) throws IOException {
        RunFigures.read(record);
    }

    /** What a lab leaves in the environment. */
    public static void readEnvironment(Map<String, String> environment) {
        Lab.of(environment);
    }
}
