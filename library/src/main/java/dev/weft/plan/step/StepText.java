package dev.weft.plan.step;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Plans in steps as readable lines. Used by one thread. */
final class StepText {

    private final List<StepPlan> plans;

    /** By rank: its buffers. A list may write a plan whenever it is asked for it. */
    private final Map<Integer, List<Buffer>> buffers = new HashMap<>();

    StepText(List<StepPlan> plans) {
        this.plans = plans;
    }

    /** At least this many lines, of whole ranks, or all. */
    List<String> lines(int least) {
        List<String> lines = new ArrayList<>();
        for (int rank = 0; rank < plans.size() && lines.size() < least; rank++) {
            StepPlan plan = plans.get(rank);
            lines.add(
                    "rank %d: %s"
                            .formatted(
                                    plan.rank(),
                                    plan.buffers().stream()
                                            .map(StepText::text)
                                            .collect(Collectors.joining(", "))));
            for (int w = 0; w < plan.workers().size(); w++) {
                Worker worker = plan.workers().get(w);
                lines.add(
                        worker.kind() == Worker.Kind.MOVER ? "  mover " + w : "  multiplier " + w);
                worker.steps().forEach(step -> lines.add("    " + text(step)));
            }
        }
        return lines;
    }

    private static String text(Buffer buffer) {
        return "%s [%d, %d]".formatted(buffer.name(), buffer.rows(), buffer.cols());
    }

    /** One step, with what it waits for and what it raises. */
    String text(Step step) {
        String what = "join";
        if (step instanceof Step.Copy copy) {
            what = "copy %s to %s".formatted(text(copy.from()), text(copy.to()));
        } else if (step instanceof Step.Multiply multiply) {
            what =
                    "multiply %s by %s into %s%s"
                            .formatted(
                                    text(multiply.a()),
                                    text(multiply.b()),
                                    text(multiply.into()),
                                    multiply.resume() ? ", going on" : "");
        } else if (step instanceof Step.Add add) {
            String addends =
                    add.addends().stream().map(this::text).collect(Collectors.joining(" + "));
            what = "add %s into %s".formatted(addends, text(add.into()));
        }
        String after =
                step.waits().isEmpty()
                        ? ""
                        : step.waits().stream()
                                .map(StepText::text)
                                .collect(Collectors.joining(", ", " after ", ""));
        return what + after + (step.signal() == null ? "" : " then " + text(step.signal()));
    }

    private static String text(Signal signal) {
        return "%d.%d%s"
                .formatted(
                        signal.rank(),
                        signal.word(),
                        signal.value() == 1 ? "" : "=" + signal.value());
    }

    /** {@code 1:gathered[4..8, 0..16]}. */
    String text(Part part) {
        boolean exists = part.rank() >= 0 && part.rank() < plans.size();
        List<Buffer> all =
                exists
                        ? buffers.computeIfAbsent(part.rank(), r -> plans.get(r).buffers())
                        : List.of();
        String name =
                part.buffer() >= 0 && part.buffer() < all.size()
                        ? all.get(part.buffer()).name()
                        : "buffer " + part.buffer();
        return "%d:%s[%d..%d, %d..%d]"
                .formatted(
                        part.rank(),
                        name,
                        part.firstRow(),
                        part.firstRow() + part.rows(),
                        part.firstCol(),
                        part.firstCol() + part.cols());
    }
}
