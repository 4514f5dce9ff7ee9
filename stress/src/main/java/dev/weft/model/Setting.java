package dev.weft.model;

import dev.weft.plan.Shards;
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
 * @param shards the rows that the plans are for
 * @param views one per call
 * @param called the rows of each call
 * @param firstCall the number of the first call; the words hold what the call before left
 * @param anyOrder every step has a thread of its own, so that a worker takes steps in any order and
 *     has several in progress; otherwise a worker takes its steps in their order
 */
record Setting(
        String label,
        List<StepPlan> plans,
        String chunks,
        Shards shards,
        List<View> views,
        List<Shards> called,
        int firstCall,
        boolean anyOrder) {

    Setting {
        plans = List.copyOf(plans);
        views = List.copyOf(views);
        called = List.copyOf(called);
    }

    /** Calls of whole products, numbered from 1. */
    Setting(String label, List<StepPlan> plans, String chunks, Shards shards, int calls) {
        this(
                label,
                plans,
                chunks,
                shards,
                Collections.nCopies(calls, View.PIPELINED),
                Collections.nCopies(calls, shards),
                1,
                false);
    }

    Setting inAnyOrder() {
        return with(", any order", plans, views, called, firstCall, true);
    }

    /** Each call has its own rows. */
    Setting withRows(Shards... ofCalls) {
        List<Shards> list = Arrays.asList(ofCalls);
        List<View> whole = Collections.nCopies(list.size(), View.PIPELINED);
        return with(", rows", plans, whole, list, firstCall, anyOrder);
    }

    private Setting with(
            String text,
            List<StepPlan> others,
            List<View> ofCalls,
            List<Shards> rowsOfCalls,
            int first,
            boolean any) {
        return new Setting(label + text, others, chunks, shards, ofCalls, rowsOfCalls, first, any);
    }

    /** Numbers of calls pass the largest int on the way. */
    Setting withWrap() {
        int first = Integer.MAX_VALUE - (calls() - 1) / 2;
        return with(", wrap", plans, views, called, first, anyOrder);
    }

    Setting withViews(View... ofCalls) {
        List<View> list = Arrays.asList(ofCalls);
        List<Shards> whole = Collections.nCopies(list.size(), shards);
        return with(", views", plans, list, whole, firstCall, anyOrder);
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
        return with(", counters", others, views, called, firstCall, anyOrder);
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
