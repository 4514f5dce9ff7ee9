package dev.weft.stress;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import picocli.CommandLine.ParameterException;

/** Every command that a page shows has options and values that the parser takes. */
class DocumentedCommandsTest {

    private static final Pattern CODE = Pattern.compile("(?ms)^ *```.*?^ *```|`\\./weft [^`]+`");

    private static final Pattern COMMENT = Pattern.compile("(?m)(^|\\s)#.*$");

    /**
     * From the program's name to the end of the line or a shell's operator. A command within a
     * command, as in a lab, is also one of its own.
     */
    private static final Pattern COMMAND =
            Pattern.compile("(?=\\./weft ((?:\"[^\"]*\"|'[^']*'|[^\"'|&;<>()\\n`])+))");

    private static final Pattern WORD = Pattern.compile("\"([^\"]*)\"|'([^']*)'|(\\S+)");

    private static final Set<String> STRESS = Main.commandLine().getSubcommands().keySet();

    private static List<String> commands(Path page) throws IOException {
        List<String> found = new ArrayList<>();
        Matcher code = CODE.matcher(Files.readString(page));
        while (code.find()) {
            String text = code.group().replace("\\\n", " ");
            COMMAND.matcher(COMMENT.matcher(text).replaceAll(""))
                    .results()
                    .map(one -> one.group(1).strip())
                    .filter(one -> !one.contains("..."))
                    .forEach(found::add);
        }
        return found;
    }

    /** Of a command alone, which is only mentioned, the help text is wanted. */
    private static String[] words(String command) {
        String whole = command.matches("[a-z-]+") ? command + " --help" : command;
        return WORD.matcher(whole)
                .results()
                .map(word -> Stream.of(1, 2, 3).map(word::group).filter(g -> g != null).toList())
                .map(List::getFirst)
                .map(word -> word.equals("N") ? "1" : word)
                .toArray(String[]::new);
    }

    @Test
    void everyCommandOfEveryPageParses() throws IOException {
        List<String> wrong = new ArrayList<>();
        int count = 0;
        try (Stream<Path> docs = Files.list(Path.of("..", "docs"))) {
            for (Path page :
                    Stream.concat(docs, Stream.of(Path.of("..", "README.md")))
                            .filter(path -> path.toString().endsWith(".md"))
                            .sorted()
                            .toList()) {
                for (String command : commands(page)) {
                    count++;
                    complaint(words(command))
                            .map(why -> page.getFileName() + ": ./weft " + command + ": " + why)
                            .ifPresent(wrong::add);
                }
            }
        }
        assertEquals(List.of(), wrong);
        assertTrue(count > 100, "found only " + count);
    }

    private static Optional<String> complaint(String[] words) {
        try {
            parser(words).parseArgs(words);
            if (words[0].equals("demo")) {
                // It passes its options on.
                String[] run = Arrays.copyOf(words, words.length);
                run[0] = "run";
                parser(run).parseArgs(run);
            }
            return Optional.empty();
        } catch (ParameterException e) {
            return Optional.of(e.getMessage());
        }
    }

    private static CommandLine parser(String[] words) {
        return STRESS.contains(words[0])
                ? Main.commandLine()
                : dev.weft.cli.Main.commandLine(words);
    }
}
