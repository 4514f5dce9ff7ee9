package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.Gpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The commands of docs/tutorial.md, taken out of the page and run in this process, but for those of
 * TutorialIT and the demo, which LinkedRunTest runs.
 */
class TutorialPageTest {

    private static final String DEMO = "./weft demo";
    private static final Path FIRST = Path.of("..", "examples", "first", "First.java");

    @TempDir Path folder;

    /** The blocks of a language, step by step. */
    static List<String> blocks(String language) throws IOException {
        String page = Files.readString(Path.of("..", "docs", "tutorial.md"));
        Matcher block = Pattern.compile("(?s)```" + language + "\n(.*?)```").matcher(page);
        List<String> found = new ArrayList<>();
        while (block.find()) {
            found.add(block.group(1));
        }
        return found;
    }

    /** Whether a block needs a shell, a program of the user's or more than one process. */
    static boolean needsShell(String block) {
        return block.contains("./weft java");
    }

    private static List<String> commands() throws IOException {
        return blocks("sh").stream()
                .filter(block -> !needsShell(block))
                .flatMap(String::lines)
                .toList();
    }

    /** Files go to a folder of the test's own. */
    private Invocation weft(String command) {
        List<String> words =
                Stream.of(command.substring("./weft ".length()).split(" "))
                        .map(word -> word.matches(".*\\.(json|html|npy)") ? inFolder(word) : word)
                        .collect(ArrayList::new, List::add, List::addAll);
        if (words.getFirst().equals("run")) {
            words.addAll(List.of("--data-dir", inFolder("out")));
            if (!words.contains("sim")) {
                words.addAll(List.of("--warmup", "1", "--iterations", "3"));
            }
            if (!command.contains("--algorithm") && !words.contains("sim")) {
                // Auto would first measure this machine.
                words.addAll(List.of("--algorithm", "mesh-push"));
            }
        }
        return Invocation.of(words.toArray(String[]::new));
    }

    private String inFolder(String file) {
        return folder.resolve(file).toString();
    }

    private void assertRuns(String command) {
        Invocation run = weft(command);
        assertEquals(0, run.code(), command + "\n" + run.err());
    }

    @Test
    void everyCommandRuns() throws IOException {
        for (String command : commands()) {
            if (!command.equals(DEMO) && !hasItsOwnTest(command)) {
                assertRuns(command);
            }
        }
        for (String file : List.of("ring.html", "both.html")) {
            assertTrue(Files.size(folder.resolve(file)) > 0, file);
        }
    }

    private static boolean hasItsOwnTest(String command) {
        return command.contains("-r cuda") || command.contains("--a ");
    }

    @Test
    void matricesOfNumPyAreMultiplied() throws Exception {
        String python = blocks("python").getFirst();
        List<String> command =
                List.of("sh", "-c", "cd \"$0\" && python3 -c \"$1\"", folder.toString(), python);
        ChildProcess saved = ChildProcess.of(folder, command).run();
        assumeTrue(saved.code() == 0, "python3 has no NumPy: " + saved.err());
        assertRuns(the("--a "));
        assertTrue(Files.size(folder.resolve("c.npy")) > 300 * 50 * 4);
    }

    private static String the(String part) throws IOException {
        return commands().stream().filter(line -> line.contains(part)).findFirst().orElseThrow();
    }

    @Test
    void itsProgramIsThatOfTheExample() throws IOException {
        List<String> program = Files.readString(FIRST).lines().map(String::strip).toList();
        List<String> shown = blocks("java").getFirst().lines().map(String::strip).toList();
        assertTrue(program.containsAll(shown), shown.toString());
        for (String block : blocks("sh")) {
            if (block.contains("/First.java")) {
                for (String command : block.lines().toList()) {
                    assertTrue(program.stream().anyMatch(l -> l.contains(command)), command);
                }
            }
        }
    }

    @Test
    void itsGpuCommandRuns() throws IOException {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElseThrow());
        assertRuns(the("-r cuda"));
    }
}
