package dev.weft.plan.step;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.IntConsumer;

/**
 * The steps of all ranks, numbered, with who raises which signal; and one order in which they can
 * be taken, every worker taking its own one by one. Once a signal is raised it stays raised, so
 * what finishes in one order finishes in every order. Used by one thread.
 */
final class StepSchedule {

    /** A step and who takes it. */
    record Numbered(int rank, int worker, Step step) {}

    /** A word: who raises it, and which workers wait for it. */
    private static final class Word {
        private int writer = -1;
        private final List<Integer> raisers = new ArrayList<>();
        private long value;
        private final List<Integer> waiting = new ArrayList<>();
    }

    private final StepText text;
    private final List<Numbered> steps = new ArrayList<>();

    /** By worker, over all ranks: its first step; the next worker's first comes after its last. */
    private final List<Integer> firsts = new ArrayList<>();

    /** By rank and number. */
    private final List<Map<Integer, Word>> words = new ArrayList<>();

    /** By number of a join: all steps that it stands for. */
    private final Map<Integer, Set<Integer>> joined = new HashMap<>();

    StepSchedule(List<StepPlan> plans) {
        this.text = new StepText(plans);
        plans.forEach(plan -> words.add(new HashMap<>()));
        for (StepPlan plan : plans) {
            for (Worker worker : plan.workers()) {
                int number = firsts.size();
                firsts.add(steps.size());
                for (Step step : worker.steps()) {
                    steps.add(new Numbered(plan.rank(), number, step));
                    addSignal(number, plans.size());
                }
            }
        }
        firsts.add(steps.size());
    }

    private void addSignal(int worker, int ranks) {
        int number = steps.size() - 1;
        Signal signal = steps.get(number).step().signal();
        if (signal == null) {
            return;
        }
        if (signal.rank() < 0 || signal.rank() >= ranks || signal.value() < 1) {
            throw fault(number, "raises a signal of no rank, or to less than 1");
        }
        if (signal.by() != steps.get(number).rank()) {
            throw fault(number, "raises a signal in the name of rank " + signal.by());
        }
        Word word = words.get(signal.rank()).computeIfAbsent(signal.word(), name -> new Word());
        if (word.writer >= 0 && word.writer != worker) {
            throw fault(number, "raises a word that another worker raises, too");
        }
        if (!word.raisers.isEmpty() && signalOf(word.raisers.getLast()).value() >= signal.value()) {
            throw fault(number, "raises a word to a value that it has already");
        }
        word.writer = worker;
        word.raisers.add(number);
    }

    Numbered get(int number) {
        return steps.get(number);
    }

    InvalidPlanException fault(int number, String fault) {
        Numbered step = steps.get(number);
        return new InvalidPlanException(step.rank(), text.text(step.step()) + ": " + fault);
    }

    String text(Part part) {
        return text.text(part);
    }

    String text(int number) {
        Numbered step = steps.get(number);
        return "rank %d, %s".formatted(step.rank(), text.text(step.step()));
    }

    /** Whether {@code step} waits for {@code before}, by its own signal or by that of a join. */
    boolean waitsFor(int step, int before) {
        Signal raised = signalOf(before);
        List<Signal> waits = steps.get(step).step().waits();
        for (Signal wait : raised == null ? List.<Signal>of() : waits) {
            if (isSameWord(raised, wait) && raised.value() <= wait.value()) {
                return true;
            }
        }
        return !joined.isEmpty()
                && waits.stream()
                        .map(wait -> joined.get(raiser(wait)))
                        .anyMatch(all -> all != null && all.contains(before));
    }

    /** Takes every step once it can be taken; fails if one never can. */
    void run(IntConsumer take) {
        int workers = firsts.size() - 1;
        int[] next = new int[workers];
        // By worker: how many waits of its next step have ended, so that none is looked at again.
        int[] ended = new int[workers];
        Deque<Integer> ready = new ArrayDeque<>();
        for (int worker = 0; worker < workers; worker++) {
            next[worker] = firsts.get(worker);
            ready.add(worker);
        }
        while (!ready.isEmpty()) {
            int worker = ready.remove();
            while (next[worker] < firsts.get(worker + 1)
                    && canBeTaken(next[worker], worker, ended)) {
                int number = next[worker]++;
                ended[worker] = 0;
                if (steps.get(number).step() instanceof Step.Join join) {
                    joined.put(number, standsFor(join));
                }
                take.accept(number);
                raise(number, ready);
            }
        }
        for (int worker = 0; worker < workers; worker++) {
            if (next[worker] < firsts.get(worker + 1)) {
                throw fault(next[worker], "waits forever");
            }
        }
    }

    private boolean canBeTaken(int number, int worker, int[] ended) {
        List<Signal> waits = steps.get(number).step().waits();
        for (; ended[worker] < waits.size(); ended[worker]++) {
            Signal wait = waits.get(ended[worker]);
            Word word = word(wait);
            if (word == null
                    || signalOf(word.raisers.getLast()).value() < wait.value()
                    || signalOf(word.raisers.getFirst()).by() != wait.by()) {
                throw fault(number, "waits for a signal that nobody raises");
            }
            if (word.value < wait.value()) {
                word.waiting.add(worker);
                return false;
            }
        }
        return true;
    }

    private void raise(int number, Deque<Integer> ready) {
        Signal signal = signalOf(number);
        if (signal != null) {
            Word word = word(signal);
            word.value = signal.value();
            ready.addAll(word.waiting);
            word.waiting.clear();
        }
    }

    private Set<Integer> standsFor(Step.Join join) {
        Set<Integer> all = new HashSet<>();
        for (Signal wait : join.waits()) {
            for (int raiser : word(wait).raisers) {
                if (signalOf(raiser).value() <= wait.value()) {
                    all.add(raiser);
                    all.addAll(joined.getOrDefault(raiser, Set.of()));
                }
            }
        }
        return all;
    }

    /** The step that raises the word to this value or beyond. */
    private int raiser(Signal wait) {
        for (int number : word(wait).raisers) {
            if (signalOf(number).value() >= wait.value()) {
                return number;
            }
        }
        return -1;
    }

    private Signal signalOf(int number) {
        return steps.get(number).step().signal();
    }

    /** Null if nobody raises it. */
    private Word word(Signal signal) {
        boolean exists = signal.rank() >= 0 && signal.rank() < words.size();
        return exists ? words.get(signal.rank()).get(signal.word()) : null;
    }

    private static boolean isSameWord(Signal one, Signal other) {
        return one.rank() == other.rank() && one.word() == other.word();
    }
}
