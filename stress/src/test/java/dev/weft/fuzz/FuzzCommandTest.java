package dev.weft.fuzz;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.gemm.Gemms;
import dev.weft.stress.CommandTest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** Every reader with some thousand damaged inputs, always the same ones. */
class FuzzCommandTest extends CommandTest {

    private static final long SEED = 20261115;

    @TempDir private Path folder;

    private int run(String... words) {
        return run(new CommandLine(new FuzzCommand()), words);
    }

    @Test
    void noReaderIsSurprised() throws IOException {
        int code = run("--smoke", "--seed", Long.toString(SEED), "--keep", folder.toString());
        assertEquals(0, code, out + "\n" + err);
        List<String> lines = out.toString().lines().toList();
        assertEquals("seed " + SEED, lines.getFirst());
        List<String> known =
                new ArrayList<>(
                        List.of("npy", "safetensors", "gguf", "run-record", "control-file"));
        if (Gemms.nativeUnavailable().isEmpty()) {
            known.add("tiles");
            known.add("blocks");
        }
        for (String target : known) {
            assertTrue(lines.stream().anyMatch(line -> line.startsWith(target + " ")), target);
        }
        assertTrue(lines.getLast().endsWith(" inputs, 0 findings"), lines.getLast());
        try (Stream<Path> kept = Files.list(folder)) {
            assertEquals(0, kept.count());
        }
    }

    @Test
    void anInputIsReadAgain() throws IOException {
        Path input = Files.writeString(folder.resolve("numbers"), "1,,2");
        assertEquals(0, run("--target", "number-list", "--input", input.toString()), err::toString);
        assertTrue(out.toString().startsWith("refused"), out.toString());
    }

    @Test
    void wrongOptionsAreRefused() {
        assertEquals(2, run("--target", "nothing"));
        assertTrue(err.toString().contains("--target 'nothing': expected one of npy"));
        assertEquals(2, run("--seconds", "0"));
        assertEquals(2, run("--input", "/nowhere", "--target", "npy"));
    }
}
