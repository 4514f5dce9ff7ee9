package dev.weft.fuzz;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.random.RandomGenerator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Damages text word by word: numbers that are negative, huge or none, values of another kind, words
 * that are missing, double or in another place, brackets as deep as no parser likes. A word is a
 * number, a text in quotes, a name, or a single sign, so JSON, Python literals, lists and lines of
 * names and values are all cut where their readers cut them. For one thread.
 */
final class TextMutations {

    private static final Pattern WORD =
            Pattern.compile(
                    "\"(?:\\\\.|[^\"\\\\]){0,200}\"|'[^']{0,200}'"
                            + "|-?[0-9]+(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|[A-Za-z_]+|[^\\sA-Za-z_0-9]");

    private static final List<String> NUMBERS =
            words(
                    """
                    0 1 -1 -0 2 3 007 +5 0x10 1.5 -1.5 0.0 1e3 1e400 -1e400 1e-400 1E+5
                    127 128 255 32768 65536 1048577 16777217 2147483647 2147483648 -2147483649
                    4294967296 9007199254740993 9223372036854775807 9223372036854775808
                    -9223372036854775809 18446744073709551616 1e2147483648 NaN Infinity -Infinity
                    """,
                    "9".repeat(40),
                    "9".repeat(1200),
                    "1" + "0".repeat(400));

    private static final List<String> VALUES =
            words(
                    """
                    null true false "" "x" {} [] [null] {"a":1} '' , .. 1..9 1,,2 - { } [ ]
                    " ' \\ : ( ) // # %s%n ../..
                    "a\\nb" "\\u0000\\u001b[31m" "\\u2028" "\\ud800"
                    """,
                    "\"" + "long ".repeat(400) + "\"",
                    "\u00e9\u20ac",
                    "\u0001",
                    "\r\n",
                    "\r",
                    "\t",
                    " ");

    private static final List<String> BRACKETS = List.of("[", "{\"a\":", "(", "[[0],");
    private static final int[] DEPTHS = {3, 60, 400, 600, 1100, 9000};

    private final RandomGenerator random;

    TextMutations(RandomGenerator random) {
        this.random = random;
    }

    /** The words of a text, and more. */
    private static List<String> words(String text, String... more) {
        return Stream.concat(Stream.of(text.strip().split("\\s+")), Stream.of(more)).toList();
    }

    /** Whether most of it can be read; what follows a binary header may be anything. */
    static boolean isText(byte[] bytes) {
        int readable = 0;
        int looked = Math.min(bytes.length, 400);
        for (int i = 0; i < looked; i++) {
            readable += bytes[i] >= ' ' || bytes[i] == '\n' ? 1 : 0;
        }
        return readable > looked / 2;
    }

    byte[] damaged(byte[] bytes) {
        // One char for each byte: damage must not depend on whether it is valid UTF-8.
        String text = new String(bytes, StandardCharsets.ISO_8859_1);
        List<int[]> words = words(text);
        if (words.isEmpty()) {
            return text(any(VALUES));
        }
        return text(damaged(text, words));
    }

    private String damaged(String text, List<int[]> words) {
        int[] word = words.get(random.nextInt(words.size()));
        int[] other = words.get(random.nextInt(words.size()));
        return switch (random.nextInt(10)) {
            case 0, 1, 2 -> {
                int[] number = number(text, words);
                yield replaced(text, number == null ? word : number, any(NUMBERS));
            }
            case 3, 4 -> replaced(text, word, any(VALUES));
            case 5 -> replaced(text, word, "");
            case 6 -> replaced(text, word, in(text, other));
            case 7 -> replaced(text, word, in(text, word) + in(text, word));
            case 8 -> stretch(text, word, other);
            default ->
                    replaced(
                            text,
                            word,
                            any(BRACKETS).repeat(DEPTHS[random.nextInt(DEPTHS.length)]));
        };
    }

    /** Everything from one word to another, twice, or in the place of a third. */
    private String stretch(String text, int[] word, int[] other) {
        int from = Math.min(word[0], other[0]);
        int to = Math.max(word[1], other[1]);
        String part = text.substring(from, to);
        return text.substring(0, to)
                + (random.nextBoolean() ? "," : "\n")
                + part
                + text.substring(to);
    }

    private int[] number(String text, List<int[]> words) {
        int start = random.nextInt(words.size());
        for (int i = 0; i < words.size(); i++) {
            int[] word = words.get((start + i) % words.size());
            if (Character.isDigit(text.charAt(word[1] - 1))) {
                return word;
            }
        }
        return null;
    }

    private static List<int[]> words(String text) {
        List<int[]> words = new ArrayList<>();
        for (Matcher matcher = WORD.matcher(text); matcher.find(); ) {
            words.add(new int[] {matcher.start(), matcher.end()});
        }
        return words;
    }

    private static String in(String text, int[] word) {
        return text.substring(word[0], word[1]);
    }

    private static String replaced(String text, int[] word, String by) {
        return text.substring(0, word[0]) + by + text.substring(word[1]);
    }

    private <T> T any(List<T> list) {
        return list.get(random.nextInt(list.size()));
    }

    private static byte[] text(String text) {
        // A sign beyond Latin-1 can only have been put in here: then all becomes UTF-8.
        boolean latin = text.chars().allMatch(c -> c < 256);
        return text.getBytes(latin ? StandardCharsets.ISO_8859_1 : StandardCharsets.UTF_8);
    }
}
