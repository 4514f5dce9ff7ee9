package dev.weft.model;

import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** One order in which the steps of all ranks can be taken, each worker taking its own in order. */
final class Schedule {

    /** A step, and who takes it. */
    record Taken(int rank, int worker, int index, Step step) {}

    private record WordName(int rank, int word) {}

    private final Map<WordName, Long> words = new HashMap<>();
    private final List<Taken> order = new ArrayList<>();

    private Schedule() {}

    static List<Taken> of(List<StepPlan> plans) {
        Schedule schedule = new Schedule();
        int[][] next = plans.stream().map(p -> new int[p.workers().size()]).toArray(int[][]::new);
        int before = -1;
        while (schedule.order.size() > before) {
            before = schedule.order.size();
            plans.forEach(plan -> schedule.take(plan, next[plan.rank()]));
        }
        return schedule.order;
    }

    private void take(StepPlan plan, int[] next) {
        for (int w = 0; w < next.length; w++) {
            List<Step> steps = plan.workers().get(w).steps();
            while (next[w] < steps.size() && canBeTaken(steps.get(next[w]))) {
                Step step = steps.get(next[w]);
                order.add(new Taken(plan.rank(), w, next[w]++, step));
                if (step.signal() != null) {
                    words.put(nameOf(step.signal()), step.signal().value());
                }
            }
        }
    }

    private boolean canBeTaken(Step step) {
        return step.waits().stream()
                .allMatch(wait -> words.getOrDefault(nameOf(wait), 0L) >= wait.value());
    }

    private static WordName nameOf(Signal signal) {
        return new WordName(signal.rank(), signal.word());
    }
}
