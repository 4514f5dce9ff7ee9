package dev.weft.compat.command;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cli.Invocation;
import dev.weft.cuda.Gpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The outputs on the pages of the source systems are what the commands print, except for numbers,
 * timelines and what depends on the times. Each command runs with smaller matrices here.
 */
class PagesTest {

    private static final Path DOCS = Path.of("..", "docs");
    private static final Pattern BLOCK = Pattern.compile("(?s)```\n(\\$ \\./weft .*?)```");

    /** What is smaller here; numbers are not compared. */
    private static final Map<String, String> SIZES =
            Map.of(
                    "ring", "--m 16 --k 64 --n-local 8",
                    "fgcc", "--m 16 --k 64 --n-global 64",
                    "helion", "--m 64 --k 64 --n 16",
                    "run", "--gm 256 --gk 256 --gn 64",
                    "gather", "--h 16 --w 8");

    /** Bench's commands are not on this class path. */
    private static final String LEFT_OUT = "bench ";

    @TempDir Path folder;

    /** A command and what the page says that it prints. */
    record Shown(String page, String command, List<String> lines) {

        @Override
        public String toString() {
            return page + ": " + command;
        }
    }

    static List<Shown> outputs() throws IOException {
        List<Shown> found = new ArrayList<>();
        try (Stream<Path> pages = Files.list(DOCS)) {
            for (Path page :
                    pages.filter(file -> file.getFileName().toString().startsWith("compat-"))
                            .sorted()
                            .toList()) {
                Matcher block = BLOCK.matcher(Files.readString(page));
                while (block.find()) {
                    add(page.getFileName().toString(), block.group(1), found);
                }
            }
        }
        assertTrue(found.size() >= 12, found.toString());
        return found;
    }

    /** A block may show several commands. */
    private static void add(String page, String block, List<Shown> found) {
        for (String part : block.split("(?m)^\\$ \\./weft ")) {
            List<String> lines = part.lines().toList();
            if (!part.isBlank() && !part.startsWith(LEFT_OUT)) {
                found.add(new Shown(page, lines.getFirst(), lines.subList(1, lines.size())));
            }
        }
    }

    @ParameterizedTest
    @MethodSource("outputs")
    void aPageShowsWhatItsCommandPrints(Shown shown) {
        boolean chooses = shown.command.contains("-r npu");
        assumeTrue(!chooses || Gpu.unavailable().isPresent(), "-r npu would use the GPU here");
        Invocation run = Invocation.ofWords(smaller(shown.command));
        assertEquals(0, run.code(), run.err());
        assertEquals(
                String.join("\n", fixed(shown.lines)),
                String.join("\n", fixed(run.out().lines().toList())));
    }

    /** Ranks are threads, which print the same; files go to a folder of the test's own. */
    private String smaller(String command) {
        String name = command.substring(0, command.indexOf(' '));
        String rest = command.substring(name.length()).replace(" --launcher processes", "");
        String[] sizes = SIZES.get(name).split(" ");
        for (int i = 0; i < sizes.length; i += 2) {
            rest = rest.replaceAll(" " + sizes[i] + " \\d+", "");
        }
        rest = rest.replaceAll(" --(warmup|iterations) \\d+", "");
        String data = name.equals("run") ? " --data-dir " + folder.resolve("out") : "";
        String rounds = rest.contains("-r sim") ? "" : " --warmup 0 --iterations 3";
        return name + rest + " " + SIZES.get(name) + rounds + data;
    }

    /** The lines without what differs from run to run; repeated ones only once. */
    private static List<String> fixed(List<String> lines) {
        List<String> kept = new ArrayList<>();
        for (String line : lines) {
            boolean said = line.startsWith("[") || line.matches(" {2}[A-Z][A-Za-z -]+: .*");
            String masked = masked(line);
            if (said && !line.startsWith("  Timeline:") && !isLast(kept, masked)) {
                kept.add(masked);
            }
        }
        assertFalse(kept.isEmpty(), "no line to compare");
        return kept;
    }

    private static boolean isLast(List<String> kept, String line) {
        return !kept.isEmpty() && kept.getLast().equals(line);
    }

    private static String masked(String line) {
        return line.replaceAll("(?<=^ {2}Overlap eff:).*", "")
                .replaceAll(" \\(\\+-\\S+\\)", "")
                .replaceAll(" \\(\\S+% measured: [^)]*\\)", "")
                .replaceAll(", the rest by Freivalds", "")
                .replaceAll("[a-z0-9-]+ engine", "# engine")
                .replaceAll("(Generated|Reusing) (.*), in \\S+$", "Generated $2, in #")
                .replaceAll("(?<![A-Za-z_0-9])[0-9][0-9,]*(\\.[0-9]+)?(e[+-]?[0-9]+)?", "#")
                .replaceAll(" {2,}", " ");
    }
}
