package dev.weft.examples.llm;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;

/**
 * Turns text into tokens as SentencePiece does with pairs: characters are joined, the pair with the
 * best score first, until no pair is a token. Characters that are no token become bytes.
 * Thread-safe.
 */
public final class Tokenizer {

    private static final char BLANK = '\u2581';
    static final String BYTE = "<0x%02X>";

    private final List<String> texts = new ArrayList<>();
    private final float[] scores;
    private final Map<String, Integer> ids = new HashMap<>();
    private final int begin;
    private final int end;
    private final String template;

    /**
     * @param tokens whose blanks may be U+2581, as in SentencePiece's own files
     * @param begin the token before a text
     * @param end the token that ends an answer
     * @param template how a chat becomes a text; empty if nobody knows
     */
    Tokenizer(List<String> tokens, float[] scores, int begin, int end, String template) {
        this.scores = scores;
        this.begin = begin;
        this.end = end;
        this.template = template;
        for (String token : tokens) {
            String text = token.replace(BLANK, ' ');
            ids.putIfAbsent(text, texts.size());
            texts.add(text);
        }
    }

    int size() {
        return texts.size();
    }

    float score(int id) {
        return scores[id];
    }

    /** As files have it, with U+2581 for blanks. */
    String textInFile(int id) {
        return texts.get(id).replace(' ', BLANK);
    }

    /** How GGUF files number the kinds of tokens: 1 text, 2 unknown, 3 control, 6 a byte. */
    int kind(int id) {
        if (id == 0) {
            return 2;
        }
        if (id == begin || id == end) {
            return 3;
        }
        return isByte(texts.get(id)) ? 6 : 1;
    }

    private static boolean isByte(String text) {
        return text.length() == 6 && text.startsWith("<0x") && text.endsWith(">");
    }

    /** The token before a text. */
    int begin() {
        return begin;
    }

    /** The token that ends an answer. */
    public int end() {
        return end;
    }

    /** How a chat becomes a text, as a template in the file; empty if there is none. */
    String template() {
        return template;
    }

    /** The token before a text, then the text. */
    public int[] encode(String text) {
        List<Integer> found = new ArrayList<>();
        found.add(begin);
        append(" " + text, found);
        return text.isEmpty()
                ? new int[] {begin}
                : found.stream().mapToInt(Integer::intValue).toArray();
    }

    /** Two neighbours that are a token together. */
    private record Pair(float score, int at, String text) {}

    /** Adds the tokens of a piece of text. */
    void append(String text, List<Integer> to) {
        int[] characters = text.codePoints().toArray();
        String[] parts = new String[characters.length];
        int[] next = new int[characters.length];
        int[] before = new int[characters.length];
        PriorityQueue<Pair> pairs =
                new PriorityQueue<>(
                        (a, b) ->
                                a.score() != b.score()
                                        ? Float.compare(b.score(), a.score())
                                        : a.at() - b.at());
        for (int i = 0; i < characters.length; i++) {
            parts[i] = Character.toString(characters[i]);
            next[i] = i + 1;
            before[i] = i - 1;
        }
        for (int i = 0; i < characters.length; i++) {
            offer(parts, next, i, pairs);
        }
        while (!pairs.isEmpty()) {
            Pair best = pairs.poll();
            int at = best.at();
            boolean stands =
                    parts[at] != null
                            && next[at] < parts.length
                            && best.text().equals(parts[at] + parts[next[at]]);
            if (!stands) {
                continue;
            }
            parts[at] = best.text();
            parts[next[at]] = null;
            next[at] = next[next[at]];
            if (next[at] < parts.length) {
                before[next[at]] = at;
            }
            offer(parts, next, at, pairs);
            if (before[at] >= 0) {
                offer(parts, next, before[at], pairs);
            }
        }
        for (int i = 0; i < parts.length; i = next[i]) {
            Integer id = ids.get(parts[i]);
            if (id != null) {
                to.add(id);
                continue;
            }
            for (byte one : parts[i].getBytes(StandardCharsets.UTF_8)) {
                to.add(ids.getOrDefault(BYTE.formatted(one & 0xFF), 0));
            }
        }
    }

    private void offer(String[] parts, int[] next, int at, PriorityQueue<Pair> pairs) {
        if (next[at] < parts.length) {
            String text = parts[at] + parts[next[at]];
            Integer id = ids.get(text);
            if (id != null) {
                pairs.add(new Pair(scores[id], at, text));
            }
        }
    }

    /** The id of a token that stands for itself, such as {@code </s>}; null if there is none. */
    Integer special(String text) {
        return ids.get(text);
    }

    /** The bytes of a token. */
    byte[] bytes(int id) {
        String text = texts.get(id);
        if (isByte(text)) {
            return new byte[] {(byte) Integer.parseInt(text.substring(3, 5), 16)};
        }
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** The text of tokens, without the blank that is put before every text. */
    public String decode(int... tokens) {
        Text text = new Text(true);
        StringBuilder all = new StringBuilder();
        for (int token : tokens) {
            all.append(text.next(token));
        }
        return all.append(text.rest()).toString();
    }

    /** Text as it comes, token by token: a character may consist of several. */
    public final class Text {

        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        private boolean first;

        /**
         * @param first whether it is the start of a text, whose blank is left out
         */
        public Text(boolean first) {
            this.first = first;
        }

        /** The characters that are complete with this token. */
        public String next(int token) {
            if (token == begin || token == end) {
                return "";
            }
            bytes.writeBytes(bytes(token));
            return isWhole(bytes.toByteArray()) ? rest() : "";
        }

        /** What is left; U+FFFD for a character that is not complete. */
        public String rest() {
            String text = bytes.toString(StandardCharsets.UTF_8);
            bytes.reset();
            boolean blank = first && text.startsWith(" ");
            first = first && text.isEmpty();
            return blank ? text.substring(1) : text;
        }

        /** Whether the last character of UTF-8 has all its bytes. */
        private static boolean isWhole(byte[] utf8) {
            for (int back = 1; back <= Math.min(3, utf8.length); back++) {
                int one = utf8[utf8.length - back] & 0xFF;
                if (one < 0x80) {
                    return true;
                }
                if (one >= 0xC0) {
                    int length = one >= 0xF0 ? 4 : one >= 0xE0 ? 3 : 2;
                    return back >= length;
                }
            }
            return true;
        }
    }
}
