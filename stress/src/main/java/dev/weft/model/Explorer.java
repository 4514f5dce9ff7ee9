package dev.weft.model;

import dev.weft.model.SearchResult.Verdict;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.function.Consumer;

/**
 * Visits states breadth first until one is wrong, all are seen or there are too many. Not
 * thread-safe; one explorer makes one search.
 *
 * <p>{@link Search#EVERY_STEP} leaves nothing out. {@link Search#FULL} has words raised at once
 * ({@link Action#isFree}). {@link Search#REDUCED} leaves out more: where the next step of a thread
 * can run and no step that the others can get to before it touches the same memory, it commutes
 * with all of them, and it alone is taken. No wrong read and no deadlock is missed thereby: take a
 * run that ends in one. If the step is in it, it can be moved to the front; if not, it can be put
 * there, which leaves the run's reads and waits as they are. Either way the rest of the run is
 * still ahead, and since every step leads forward that ends.
 */
final class Explorer {

    /** How much is left out. */
    enum Search {
        EVERY_STEP,
        FULL,
        REDUCED
    }

    private static final int NOBODY = -1;

    private final Model model;
    private final Search search;
    private final int mostStates;
    private final Consumer<int[]> visitor;
    private final StateStore store;
    private final int[] at;
    private final int[] ahead;

    /** By thread, step and other thread, made when asked for: the other's steps that conflict. */
    private final BitSet[][][] conflicts;

    private long transitions;
    private int depth;
    private int current;

    /**
     * @param visitor is shown every state, which it must not keep
     */
    Explorer(Model model, Search search, int mostStates, Consumer<int[]> visitor) {
        this.model = model;
        this.search = search;
        this.mostStates = mostStates;
        this.visitor = visitor;
        int[] largest = new int[model.threads()];
        this.conflicts = new BitSet[model.threads()][][];
        for (int t = 0; t < largest.length; t++) {
            largest[t] = model.stepCount(t);
            conflicts[t] = new BitSet[largest[t]][];
        }
        this.store = new StateStore(largest);
        this.at = new int[largest.length];
        this.ahead = new int[largest.length];
    }

    static SearchResult explore(Model model, Search search, int mostStates) {
        return new Explorer(model, search, mostStates, state -> {}).run();
    }

    SearchResult run() {
        store.add(at, NOBODY);
        int endOfLevel = 1;
        for (current = 0; current < store.size(); current++) {
            if (current == endOfLevel) {
                depth++;
                endOfLevel = store.size();
            }
            if (store.size() > mostStates) {
                return outcome(Verdict.LIMIT, "more than " + mostStates + " states", -1);
            }
            store.load(current, at);
            visitor.accept(at);
            SearchResult wrong = expand();
            if (wrong != null) {
                return wrong;
            }
        }
        return outcome(Verdict.PROVEN, "", -1);
    }

    private SearchResult expand() {
        int alone = search == Search.REDUCED ? commuting() : NOBODY;
        if (alone != NOBODY) {
            return take(alone);
        }
        boolean stuck = true;
        for (int thread = 0; thread < at.length; thread++) {
            if (model.isEnabled(at, thread)) {
                stuck = false;
                SearchResult wrong = take(thread);
                if (wrong != null) {
                    return wrong;
                }
            }
        }
        return stuck && !model.isDone(at) ? outcome(Verdict.DEADLOCK, waits(), -1) : null;
    }

    /** Takes a thread's next step and those after it that only raise words; then goes back. */
    private SearchResult take(int thread) {
        transitions++;
        String wrong = model.wrongRead(at, thread);
        if (wrong != null) {
            return outcome(Verdict.WRONG_READ, wrong, thread);
        }
        int before = at[thread];
        Action step = model.next(at, thread);
        do {
            Word word = step.raises();
            int value = word == null ? 0 : word.value(at);
            at[thread]++;
            if (word != null && !word.reached(at, value)) {
                return outcome(Verdict.NOT_MONOTONE, word + " falls from " + value, -1);
            }
            step = model.next(at, thread);
        } while (search != Search.EVERY_STEP && step != null && step.isFree());
        store.add(at, current);
        at[thread] = before;
        return null;
    }

    /** A thread whose next step commutes with all that others can do before it, or nobody. */
    private int commuting() {
        for (int thread = 0; thread < at.length; thread++) {
            if (model.isEnabled(at, thread) && commutes(thread)) {
                return thread;
            }
        }
        return NOBODY;
    }

    private boolean commutes(int thread) {
        if (!model.next(at, thread).touchesMemory()) {
            return true;
        }
        System.arraycopy(at, 0, ahead, 0, at.length);
        model.runHolding(thread, at[thread], ahead);
        for (int other = 0; other < at.length; other++) {
            if (other != thread && ahead[other] > at[other]) {
                int conflict = conflicts(thread, at[thread], other).nextSetBit(at[other]);
                if (conflict >= 0 && conflict < ahead[other]) {
                    return false;
                }
            }
        }
        return true;
    }

    private BitSet conflicts(int thread, int index, int other) {
        BitSet[][] ofThread = conflicts[thread];
        if (ofThread[index] == null) {
            ofThread[index] = new BitSet[at.length];
        }
        if (ofThread[index][other] == null) {
            BitSet found = new BitSet();
            Action step = model.step(thread, index);
            for (int i = 0; i < model.stepCount(other); i++) {
                found.set(i, step.conflictsWith(model.step(other, i)));
            }
            ofThread[index][other] = found;
        }
        return ofThread[index][other];
    }

    private String waits() {
        List<String> waits = new ArrayList<>();
        for (int thread = 0; thread < at.length; thread++) {
            Action next = model.next(at, thread);
            if (next != null) {
                Wait open = next.waits().stream().filter(w -> !w.isOver(at)).findFirst().get();
                waits.add(model.name(thread) + " waits for " + open);
            }
        }
        return String.join("; ", waits);
    }

    /**
     * @param thread whose next step ends the trace, or -1
     */
    private SearchResult outcome(Verdict verdict, String problem, int thread) {
        boolean wrong = verdict != Verdict.PROVEN && verdict != Verdict.LIMIT;
        List<Integer> last = Arrays.stream(at).boxed().toList();
        List<String> trace = new ArrayList<>();
        if (wrong) {
            if (thread >= 0) {
                trace.add(model.next(at, thread).text());
            }
            trace(trace);
        }
        return new SearchResult(
                verdict, store.size(), transitions, depth, problem, trace.reversed(), last);
    }

    /** From the current state back to the first. */
    private void trace(List<String> trace) {
        int[] after = new int[at.length];
        int[] before = new int[at.length];
        for (int state = current; store.parent(state) != NOBODY; state = store.parent(state)) {
            store.load(state, after);
            store.load(store.parent(state), before);
            for (int thread = 0; thread < at.length; thread++) {
                for (int i = after[thread] - 1; i >= before[thread]; i--) {
                    trace.add(model.step(thread, i).text());
                }
            }
        }
    }
}
