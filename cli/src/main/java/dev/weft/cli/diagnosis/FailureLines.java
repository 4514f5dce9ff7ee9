package dev.weft.cli.diagnosis;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/**
 * Ends of ranks on their way through the error output of mpirun, which may break up long lines of
 * ranks that write at the same time: short lines, each a piece with its place. Any thread may call.
 */
public final class FailureLines {

    private static final String MARK = "weft-end ";
    private static final int PIECE_CHARS = 800;
    private static final int MOST_PIECES = 4096;

    private final Map<Integer, String[]> pieces = new TreeMap<>();

    /** The lines that tell of a rank's end. */
    public static List<String> of(RankFailure end) {
        String text = end.text();
        int count = Math.ceilDiv(text.length(), PIECE_CHARS);
        List<String> lines = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int from = i * PIECE_CHARS;
            String piece = text.substring(from, Math.min(text.length(), from + PIECE_CHARS));
            lines.add(MARK + end.rank() + " " + i + " " + count + " " + piece);
        }
        return lines;
    }

    /** Whether the line is one of those; if so it is kept. */
    public synchronized boolean take(String line) {
        // Not at the beginning: launchers can be told to put the rank's number there.
        int mark = line.indexOf(MARK);
        if (mark < 0) {
            return false;
        }
        String[] fields = line.substring(mark + MARK.length()).split(" ", 4);
        try {
            int count = Integer.parseInt(fields[2]);
            if (count < 1 || count > MOST_PIECES) {
                return false;
            }
            pieces.computeIfAbsent(Integer.parseInt(fields[0]), rank -> new String[count])[
                            Integer.parseInt(fields[1])] =
                    fields[3];
            return true;
        } catch (NumberFormatException | IndexOutOfBoundsException e) {
            // Somebody else's line, which people may want to see.
            return false;
        }
    }

    /** The ends that have come whole. */
    public synchronized List<RankFailure> ends() {
        return pieces.values().stream()
                .filter(whole -> Arrays.stream(whole).allMatch(Objects::nonNull))
                .flatMap(whole -> RankFailure.readable(String.join("", whole)).stream())
                .toList();
    }
}
