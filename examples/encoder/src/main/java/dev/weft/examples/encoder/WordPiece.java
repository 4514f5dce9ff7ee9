package dev.weft.examples.encoder;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import java.io.IOException;
import java.io.InputStream;
import java.text.Normalizer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * Splits text into tokens as BERT does: lower case without accents, cut at blanks and around
 * punctuation, each word the longest pieces that the vocabulary has. Thread-safe.
 */
public final class WordPiece {

    /** The tokens at the start and the end of every sentence. */
    static final int MARKS = 2;

    private static final int LONGEST_WORD = 100;
    private static final String SPECIAL = "\\[(?:PAD|UNK|CLS|SEP|MASK)\\]";

    /** Without tables of names, which are all different here. */
    private static final JsonFactory JSON =
            JsonFactory.builder()
                    .disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
                    .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
                    .build();

    private final Map<String, Integer> vocabulary = new HashMap<>();
    private final int unknown;
    private final int first;
    private final int last;
    private final int most;

    /**
     * @param json as the library tokenizers of Hugging Face writes it
     */
    WordPiece(InputStream json) throws IOException {
        int longest = 0;
        try (JsonParser parser = JSON.createParser(json)) {
            while (parser.nextToken() != null) {
                if (parser.currentToken().isNumeric()) {
                    String object = parser.getParsingContext().getParent().getCurrentName();
                    String name = parser.currentName();
                    if ("vocab".equals(object)) {
                        vocabulary.put(name, parser.getIntValue());
                    } else if ("truncation".equals(object) && name.equals("max_length")) {
                        longest = parser.getIntValue();
                    }
                }
            }
        }
        most = longest;
        unknown = vocabulary.get("[UNK]");
        first = vocabulary.get("[CLS]");
        last = vocabulary.get("[SEP]");
    }

    /** The most tokens that a text can have, marks included. */
    public int most() {
        return most;
    }

    /**
     * The {@link #tokens} of each text.
     *
     * @throws IllegalArgumentException with a one-line message, if a text has no words
     */
    public List<int[]> sentences(List<String> texts) {
        List<int[]> sentences = texts.stream().map(this::tokens).toList();
        for (int i = 0; i < sentences.size(); i++) {
            if (sentences.get(i).length == MARKS) {
                throw new IllegalArgumentException(
                        "text number %d has no words: expected some".formatted(i));
            }
        }
        return sentences;
    }

    /**
     * The tokens with marks at start and end; past the model's longest sentence text is cut off.
     */
    int[] tokens(String text) {
        List<Integer> tokens = new ArrayList<>(List.of(first));
        for (String part : text.splitWithDelimiters(SPECIAL, -1)) {
            if (part.matches(SPECIAL)) {
                tokens.add(vocabulary.get(part));
            } else {
                for (String word : spaced(part).split(" ")) {
                    addPieces(word, tokens);
                }
            }
        }
        int count = Math.min(tokens.size() + 1, most);
        return IntStream.concat(
                        tokens.stream().mapToInt(Integer::intValue).limit(count - 1L),
                        IntStream.of(last))
                .toArray();
    }

    /** Words with one blank or more between. */
    private static String spaced(String text) {
        StringBuilder clean = new StringBuilder();
        text.codePoints().forEach(c -> addClean(c, clean));
        StringBuilder spaced = new StringBuilder();
        Normalizer.normalize(clean, Normalizer.Form.NFD)
                .codePoints()
                .filter(c -> Character.getType(c) != Character.NON_SPACING_MARK)
                .forEach(c -> addLower(c, spaced));
        return spaced.toString();
    }

    private static void addClean(int c, StringBuilder clean) {
        int type = Character.getType(c);
        if (c == '\t'
                || c == '\n'
                || c == '\r'
                || type == Character.SPACE_SEPARATOR
                || type == Character.LINE_SEPARATOR
                || type == Character.PARAGRAPH_SEPARATOR) {
            clean.append(' ');
        } else if (isIdeograph(c)) {
            clean.append(' ').appendCodePoint(c).append(' ');
        } else if (c != 0
                && c != 0xFFFD
                && type != Character.CONTROL
                && type != Character.FORMAT
                && type != Character.PRIVATE_USE
                && type != Character.SURROGATE) {
            clean.appendCodePoint(c);
        }
    }

    private static void addLower(int c, StringBuilder spaced) {
        String lower = Character.toString(c).toLowerCase(Locale.ROOT);
        if (isPunctuation(c)) {
            spaced.append(' ').append(lower).append(' ');
        } else {
            spaced.append(lower);
        }
    }

    /** BERT's ranges of Chinese characters, of which each is a word. */
    private static boolean isIdeograph(int c) {
        return c >= 0x4E00 && c <= 0x9FFF
                || c >= 0x3400 && c <= 0x4DBF
                || c >= 0x20000 && c <= 0x2A6DF
                || c >= 0x2A700 && c <= 0x2CEAF
                || c >= 0xF900 && c <= 0xFAFF
                || c >= 0x2F800 && c <= 0x2FA1F;
    }

    private static boolean isPunctuation(int c) {
        return c >= '!' && c <= '/'
                || c >= ':' && c <= '@'
                || c >= '[' && c <= '`'
                || c >= '{' && c <= '~'
                || switch (Character.getType(c)) {
                    case Character.CONNECTOR_PUNCTUATION,
                            Character.DASH_PUNCTUATION,
                            Character.START_PUNCTUATION,
                            Character.END_PUNCTUATION,
                            Character.INITIAL_QUOTE_PUNCTUATION,
                            Character.FINAL_QUOTE_PUNCTUATION,
                            Character.OTHER_PUNCTUATION ->
                            true;
                    default -> false;
                };
    }

    private void addPieces(String word, List<Integer> tokens) {
        if (word.isEmpty()) {
            return;
        }
        // Before any piece is looked for: that takes the square of a word's length.
        if (word.codePointCount(0, word.length()) > LONGEST_WORD) {
            tokens.add(unknown);
            return;
        }
        int known = tokens.size();
        int from = 0;
        while (from < word.length()) {
            int to = word.length();
            Integer piece = null;
            while (to > from) {
                String text = word.substring(from, to);
                piece = vocabulary.get(from == 0 ? text : "##" + text);
                if (piece != null) {
                    break;
                }
                to--;
            }
            if (piece == null) {
                tokens.subList(known, tokens.size()).clear();
                tokens.add(unknown);
                return;
            }
            tokens.add(piece);
            from = to;
        }
    }
}
