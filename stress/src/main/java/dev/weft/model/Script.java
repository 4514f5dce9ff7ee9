package dev.weft.model;

import java.util.ArrayList;
import java.util.List;

/**
 * Writes down what one thread does, step after step over all calls. A wait belongs to the next step
 * that touches memory: nothing that a wait has seen can be undone, so to wait and go on later is to
 * wait later.
 */
final class Script {

    private final int thread;
    private final String name;
    private final Faults signals;
    private final List<Action> steps = new ArrayList<>();
    private final List<Wait> pending = new ArrayList<>();
    private String call = "";

    Script(int thread, String name, Faults signals) {
        this.thread = thread;
        this.name = name;
        this.signals = signals;
    }

    int thread() {
        return thread;
    }

    List<Action> steps() {
        return steps;
    }

    /** How the steps that follow are told from those of other calls. */
    void inCall(int number) {
        call = ", call " + number;
    }

    void await(Word word, int value, int mostAhead) {
        pending.add(new Wait(word, value, mostAhead));
    }

    /** Reads in two steps; between them anything may happen. */
    void read(String what, Cells part) {
        if (part.isEmpty()) {
            return;
        }
        add("begins to read " + what, part, List.of(), null);
        add("has read " + what, part, List.of(), null);
    }

    /**
     * Writes, out of what it reads meanwhile, in two steps; between them the target is torn.
     *
     * @param what it begins to do
     * @param done the same when it is done
     * @param from what it reads
     * @param besides what others have in the places that it reads and writes
     */
    void copy(String what, String done, Cells from, Cells besides, Cells to) {
        if (to.isEmpty()) {
            return;
        }
        for (History cell : to.cells()) {
            cell.write(thread, steps.size() + 1, Places.TORN);
        }
        add("begins to " + what, both(from, besides), to.cells(), null);
        for (int i = 0; i < to.cells().size(); i++) {
            to.cells().get(i).write(thread, steps.size() + 1, to.tags().get(i));
        }
        add("has " + done, besides, to.cells(), null);
    }

    private static Cells both(Cells one, Cells other) {
        List<History> cells = new ArrayList<>(one.cells());
        List<Integer> tags = new ArrayList<>(one.tags());
        cells.addAll(other.cells());
        tags.addAll(other.tags());
        return new Cells(cells, tags);
    }

    void raise(Word word, int value) {
        settle();
        if (signals.isLost(word, value)) {
            add("raises " + word + " to " + value + ", which is lost", null);
            return;
        }
        for (int times = signals.areDoubled() ? 2 : 1; times > 0; times--) {
            word.raise(thread, steps.size() + 1, value);
            add("raises " + word + " to " + value, word);
        }
    }

    /** The last step raises the word as well. */
    void end(Word word, int value) {
        settle();
        word.raise(thread, steps.size(), value);
    }

    /** Waits that no step has taken become a step. */
    void settle() {
        if (!pending.isEmpty()) {
            add("has waited", null);
        }
    }

    private void add(String text, Word raises) {
        add(text, Cells.NONE, List.of(), raises);
    }

    private void add(String text, Cells reads, List<History> writes, Word raises) {
        steps.add(new Action(name + call + ": " + text, pending, reads, writes, raises));
        pending.clear();
    }

    @Override
    public String toString() {
        return name;
    }
}
