package dev.weft.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The lines of {@code docs/python.md} that read records, on records that were just written. */
class PythonIT {

    private static final Path GUIDE = Path.of("../docs/python.md");
    private static final Pattern LINES = Pattern.compile("```python\n(.*?)```", Pattern.DOTALL);

    @TempDir Path folder;

    @Test
    void recordsAreReadByPandasAsTheGuideSays() throws Exception {
        Optional<String> python =
                List.of("python3", "/usr/bin/python3").stream()
                        .filter(PythonIT::hasPandas)
                        .findFirst();
        assumeTrue(
                python.isPresent(),
                "no python3 with pandas: install Debian's python3-pandas, or run ./weft test"
                        + " --with-extras");
        weft("run -r sim --no-verify -v h200-nvlink8 -n 2 --gm 256 --gk 64 --gn 64 --json r.json");
        Files.createDirectory(folder.resolve("runs"));
        Files.copy(folder.resolve("r.json"), folder.resolve("runs/r.json"));
        weft(
                "sweep -v h200-nvlink8 -n 2 --gm 256,512 --gk 64 --gn 64 --splits 4"
                        + " --algorithm ring,sequential --json sweep.json --csv sweep.csv");
        weft("bench ascend --quick --only predicted --rows 1 --json bench.json");

        String guide = Files.readString(GUIDE);
        String lines =
                LINES.matcher(guide.substring(guide.indexOf("## A run record in pandas")))
                        .results()
                        .map(MatchResult::group)
                        .map(block -> block.replaceAll("```(python)?", ""))
                        .collect(Collectors.joining());
        assertTrue(lines.contains("pd.json_normalize") && lines.contains("bench.json"), lines);
        Files.writeString(folder.resolve("guide.py"), lines + "\nassert len(spans) > 0\n");
        Path output = folder.resolve("output.txt");
        int code = run(output, python.get(), "guide.py");
        assertEquals(0, code, () -> lines + read(output));
    }

    private static boolean hasPandas(String python) {
        try {
            return new ProcessBuilder(python, "-c", "import pandas")
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start()
                            .waitFor()
                    == 0;
        } catch (IOException e) {
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** Runs a command whose files are in the folder. */
    private void weft(String words) {
        List<String> all = List.of(words.split(" "));
        Invocation run =
                Invocation.of(
                        all.stream()
                                .map(
                                        word ->
                                                word.matches("\\w+\\.(json|csv)")
                                                        ? folder.resolve(word).toString()
                                                        : word)
                                .toArray(String[]::new));
        assertEquals(0, run.code(), run.err() + run.out());
    }

    private int run(Path output, String... command) throws IOException, InterruptedException {
        Process process =
                new ProcessBuilder(command)
                        .directory(folder.toFile())
                        .redirectErrorStream(true)
                        .redirectOutput(output.toFile())
                        .start();
        try {
            assertTrue(process.waitFor(60, TimeUnit.SECONDS), "did not end in time");
            return process.exitValue();
        } finally {
            process.destroyForcibly();
        }
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            return e.toString();
        }
    }
}
