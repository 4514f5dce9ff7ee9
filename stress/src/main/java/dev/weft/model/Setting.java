package dev.weft.model;

import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.Worker;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What is checked: the plans of all ranks and the calls that they make back to back.
 *
 * @param label the algorithm and what is special here
 * @param chunks per rank, such as 2,0,1
 * @param rows of the whole matrix
 * @param views one per call
 * @param firstCall the number of the first call; the words hold what the call before left
 * @param anyOrder every step has a thread of its own, so that a worker takes steps in any order and
 *     has several in progress; otherwise a worker takes its steps in their order
 */
record Setting(
        String label,
        List<StepPlan> plans,
        String chunks,
        long rows,
        List<View> views,
        int firstCall,
        boolean anyOrder) {

    Setting {
        plans = List.copyOf(plans);
        views = List.copyOf(views);
    }

    /** Calls of whole products, numbered from 1. */
    Setting(String label, List<StepPlan> plans, String chunks, long rows, int calls) {
        this(label, plans, chunks, rows, Collections.nCopies(calls, View.PIPELINED), 1, false);
    }

    Setting inAnyOrder() {
        return new Setting(label + ", any order", plans, chunks, rows, views, firstCall, true);
    }

    /** Numbers of calls pass the largest int on the way. */
    Setting withWrap() {
        int first = Integer.MAX_VALUE - (calls() - 1) / 2;
        return new Setting(label + ", wrap", plans, chunks, rows, views, first, anyOrder);
    }

    Setting withViews(View... ofCalls) {
        List<View> list = Arrays.asList(ofCalls);
        return new Setting(label + ", views", plans, chunks, rows, list, firstCall, anyOrder);
    }

    /** Lanes count what they bring to a rank, instead of a word for each copy. */
    Setting withCounters() {
        Map<Signal, Signal> counted = new HashMap<>();
        int first = 1 + words().stream().mapToInt(Signal::word).max().orElse(0);
        for (StepPlan plan : plans) {
            for (int w = 0; w < plan.workers().size(); w++) {
                int[] brought = new int[plans.size()];
                for (Step step : plan.workers().get(w).steps()) {
                    if (step instanceof Step.Copy && step.signal() != null) {
                        int to = step.signal().rank();
                        int word = first + plan.rank() * 1000 + w;
                        counted.put(
                                step.signal(), new Signal(plan.rank(), to, word, ++brought[to]));
                    }
                }
            }
        }
        List<StepPlan> others = new ArrayList<>();
        for (StepPlan plan : plans) {
            List<Worker> workers = new ArrayList<>();
            for (Worker worker : plan.workers()) {
                List<Step> steps =
                        worker.steps().stream().map(step -> counted(step, counted)).toList();
                workers.add(new Worker(worker.kind(), steps));
            }
            others.add(new StepPlan(plan.rank(), plan.buffers(), workers));
        }
        return new Setting(label + ", counters", others, chunks, rows, views, firstCall, anyOrder);
    }

    private static Step counted(Step step, Map<Signal, Signal> counted) {
        return step.with(
                step.waits().stream().map(wait -> counted.getOrDefault(wait, wait)).toList(),
                step.signal() == null ? null : counted.getOrDefault(step.signal(), step.signal()));
    }

    /** What steps raise. */
    List<Signal> words() {
        return plans.stream()
                .flatMap(plan -> plan.workers().stream())
                .flatMap(worker -> worker.steps().stream())
                .map(Step::signal)
                .filter(signal -> signal != null)
                .toList();
    }

    /** Whether some word counts, which only steps that are taken in order can do. */
    boolean counts() {
        return words().stream().anyMatch(signal -> signal.value() > 1);
    }

    int ranks() {
        return plans.size();
    }

    int calls() {
        return views.size();
    }

    @Override
    public String toString() {
        return label + " of " + chunks + ", " + calls() + " calls";
    }
}
