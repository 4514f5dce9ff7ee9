package dev.weft.compat.command;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Main;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import picocli.CommandLine.ParameterException;

/** The parser takes every command that a page shows: what needs GPUs or hosts runs nowhere here. */
class DocumentedCommandsTest {

    private static final Path ROOT = Path.of("..");
    private static final Set<String> SHELL = Set.of("", "sh", "bash");
    private static final Pattern COMMAND = Pattern.compile("(?<![\\w/-])\\./weft ([^|;&<>()]*)");
    private static final Pattern WORD = Pattern.compile("'([^']*)'|\"([^\"]*)\"|(\\S+)");

    private static List<Path> pages() throws IOException {
        List<Path> pages = new ArrayList<>();
        try (Stream<Path> top = Files.list(ROOT);
                Stream<Path> docs = Files.list(ROOT.resolve("docs"));
                Stream<Path> examples = Files.walk(ROOT.resolve("examples"), 2)) {
            Stream.of(top, docs, examples)
                    .flatMap(files -> files)
                    .filter(file -> file.toString().endsWith(".md"))
                    .forEach(pages::add);
        }
        return pages;
    }

    private static List<String[]> commands(Path page) throws IOException {
        List<String[]> commands = new ArrayList<>();
        String language = null;
        for (String line : Files.readString(page).replace("\\\n", " ").lines().toList()) {
            if (line.startsWith("```")) {
                language = language == null ? line.substring(3) : null;
            } else if (language != null && SHELL.contains(language)) {
                COMMAND.matcher(line.replaceFirst("(^| )#.*", ""))
                        .results()
                        .forEach(command -> commands.add(words(command.group(1))));
            }
        }
        return commands;
    }

    private static String[] words(String command) {
        return WORD.matcher(command)
                .results()
                .map(w -> w.group().replaceAll("^['\"]|['\"]$", ""))
                .toArray(String[]::new);
    }

    @Test
    void everyCommandIsTakenByTheParser() throws IOException {
        TreeMap<String, String> refused = new TreeMap<>();
        int count = 0;
        for (Path page : pages()) {
            for (String[] words : commands(page)) {
                // The benchmarks are a module of their own.
                if (!words[0].equals("bench")) {
                    count++;
                    try {
                        Main.commandLine(words).parseArgs(words);
                    } catch (ParameterException e) {
                        refused.put(page + ": " + String.join(" ", words), e.getMessage());
                    }
                }
            }
        }
        assertTrue(count > 50, "only " + count + " commands found");
        assertEquals(new TreeMap<>(), refused);
    }
}
