package dev.weft.model;

import java.util.Arrays;
import java.util.List;
import java.util.Set;

/** One step of a thread, done in one go once all its waits are over. Immutable. */
final class Action {

    private final String text;
    private final Wait[] waits;

    /** Cells that must hold what the call expects at this very moment. */
    private final History[] read;

    private final int[] expected;
    private final Set<History> written;
    private final Word raises;

    /**
     * @param writes cells whose content changes
     * @param raises the word that may change, or null
     */
    Action(String text, List<Wait> waits, Cells reads, List<History> writes, Word raises) {
        this.text = text;
        this.waits = waits.toArray(Wait[]::new);
        this.read = reads.cells().toArray(History[]::new);
        this.expected = reads.tags().stream().mapToInt(Integer::intValue).toArray();
        this.written = Set.copyOf(writes);
        this.raises = raises;
    }

    String text() {
        return text;
    }

    List<Wait> waits() {
        return List.of(waits);
    }

    /** The word that it may change, or null. */
    Word raises() {
        return raises;
    }

    /**
     * Whether it does nothing but raise a word, and may do so at once. A word that is raised can
     * only end waits, so such a step changes neither what any other thread may do nor what it sees:
     * it may be taken before all others, and nothing is missed.
     */
    boolean isFree() {
        return waits.length == 0 && !touchesMemory();
    }

    boolean touchesMemory() {
        return read.length > 0 || !written.isEmpty();
    }

    boolean isEnabled(int[] at) {
        for (Wait wait : waits) {
            if (!wait.isOver(at)) {
                return false;
            }
        }
        return true;
    }

    /** What it would read wrongly, in words, or null. */
    String wrongRead(int[] at, Places places) {
        for (int i = 0; i < read.length; i++) {
            int found = read[i].value(at);
            if (found != expected[i]) {
                return "finds "
                        + places.describe(found)
                        + " in the "
                        + read[i]
                        + ": expected "
                        + places.describe(expected[i]);
            }
        }
        return null;
    }

    /** Whether the order of the two makes a difference: one of them writes what the other uses. */
    boolean conflictsWith(Action other) {
        return uses(other.written) || other.uses(written);
    }

    private boolean uses(Set<History> cells) {
        return Arrays.stream(read).anyMatch(cells::contains)
                || written.stream().anyMatch(cells::contains);
    }

    @Override
    public String toString() {
        return text;
    }
}
