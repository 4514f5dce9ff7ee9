package dev.weft.cli.message;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiConsumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Messages of ranks under mpirun, as marked lines among the other lines of standard error. A
 * message is a record. mpirun may break up long lines of ranks that write at the same time, so each
 * line is a short numbered piece. Used by one thread.
 */
public final class RankLines {

    private static final int PIECE_CHARS = 800;
    private static final int MOST_PIECES = 4096;

    /**
     * Rank, type of message, number of the piece, number of pieces, the piece. Not only at the
     * beginning of a line: launchers can be told to put the rank's number there.
     */
    private static final Pattern LINE =
            Pattern.compile(
                    "weft-rank ([0-9]{1,6}) ([A-Za-z]{1,30}) ([0-9]{1,4}) ([0-9]{1,4})"
                            + " ([A-Za-z0-9+/=]*)\\s*$");

    private final List<Class<? extends Record>> types;
    private final BiConsumer<Integer, Record> listener;
    private final Map<String, String[]> unfinished = new HashMap<>();

    /**
     * @param types the types of messages
     * @param listener receives the rank and its message, once that is complete
     */
    public RankLines(List<Class<? extends Record>> types, BiConsumer<Integer, Record> listener) {
        this.types = List.copyOf(types);
        this.listener = listener;
    }

    /** Writes a message to standard error. */
    public static void tell(int rank, Record message) {
        of(rank, message).forEach(System.err::println);
    }

    /** The lines of a message. */
    public static List<String> of(int rank, Record message) {
        String text = Base64.getEncoder().encodeToString(RecordBytes.of(message));
        int count = Math.max(1, Math.ceilDiv(text.length(), PIECE_CHARS));
        String head = "weft-rank " + rank + " " + message.getClass().getSimpleName();
        List<String> lines = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int from = i * PIECE_CHARS;
            String piece = text.substring(from, Math.min(text.length(), from + PIECE_CHARS));
            lines.add(head + " " + i + " " + count + " " + piece);
        }
        return lines;
    }

    /** Whether the line is a piece of a message; users may want to see the others. */
    public boolean take(String line) {
        Matcher piece = LINE.matcher(line);
        if (!piece.find()) {
            return false;
        }
        int number = Integer.parseInt(piece.group(3));
        int count = Integer.parseInt(piece.group(4));
        Class<? extends Record> type =
                types.stream()
                        .filter(one -> one.getSimpleName().equals(piece.group(2)))
                        .findFirst()
                        .orElse(null);
        if (type == null || number >= count || count > MOST_PIECES) {
            return false;
        }
        String message = piece.group(1) + " " + piece.group(2) + " " + count;
        String[] pieces = unfinished.computeIfAbsent(message, key -> new String[count]);
        pieces[number] = piece.group(5);
        if (Arrays.stream(pieces).allMatch(Objects::nonNull)) {
            unfinished.remove(message);
            return finish(Integer.parseInt(piece.group(1)), type, String.join("", pieces));
        }
        return true;
    }

    private boolean finish(int rank, Class<? extends Record> type, String text) {
        try {
            listener.accept(rank, RecordBytes.read(type, Base64.getDecoder().decode(text)));
            return true;
        } catch (IOException | IllegalArgumentException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no message", e);
            return false;
        }
    }
}
