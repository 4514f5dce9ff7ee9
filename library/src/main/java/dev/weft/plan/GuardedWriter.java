package dev.weft.plan;

import dev.weft.plan.Reduction.Order;
import dev.weft.plan.step.StepPlan;
import java.util.AbstractList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * A writer that a program has added. If it fails, or returns what is no list of plans, a {@link
 * PlanException} names the algorithm, the method and the line. What it refuses itself stays an
 * {@link IllegalArgumentException}. Two are equal if their writers are.
 */
sealed interface GuardedWriter extends PlanWriter {

    PlanWriter writer();

    @Override
    default String label() {
        String label = guarded(writer().getClass().getName(), "label()", writer()::label);
        return label != null ? label : writer().getClass().getName();
    }

    @Override
    default boolean isSymmetric() {
        return call("isSymmetric()", "an answer", writer()::isSymmetric);
    }

    /** A way to gather. */
    record OfGather(GatherWriter writer) implements GuardedWriter, GatherWriter {

        @Override
        public Chunks cut(Chunks given) {
            return call("cut()", "chunks", () -> writer.cut(given));
        }

        @Override
        public List<StepPlan> plans(GatherRequest request) {
            return plans(request.ranks(), () -> writer.plans(request));
        }
    }

    /** A way to sum. */
    record OfSums(ReductionWriter writer) implements GuardedWriter, ReductionWriter {

        @Override
        public Order order() {
            return call("order()", "an order", writer::order);
        }

        @Override
        public boolean gives(Order wanted) {
            return call("gives()", "an answer", () -> writer.gives(wanted));
        }

        @Override
        public List<StepPlan> plans(ReductionRequest request) {
            return plans(request.ranks(), () -> writer.plans(request));
        }
    }

    /** Plans for all ranks, each of which may be written on demand. */
    default List<StepPlan> plans(int ranks, Supplier<List<StepPlan>> write) {
        String expected = "a plan for each of " + ranks + " ranks";
        List<StepPlan> plans = call("plans()", expected, write);
        int size = call("plans().size()", "a number", plans::size);
        if (size != ranks) {
            throw new PlanException(
                    label(), "plans() returned %s plans: expected %s", size, expected);
        }
        return new AbstractList<>() {
            @Override
            public StepPlan get(int rank) {
                return call("plans().get(" + rank + ")", "a plan", () -> plans.get(rank));
            }

            @Override
            public int size() {
                return size;
            }
        };
    }

    /** What the writer returns, which must not be null. */
    default <T> T call(String call, String expected, Supplier<T> body) {
        T result = guarded(label(), call, body);
        if (result == null) {
            throw new PlanException(label(), "%s returned null: expected %s", call, expected);
        }
        return result;
    }

    private static <T> T guarded(String name, String call, Supplier<T> body) {
        try {
            return body.get();
        } catch (PlanException e) {
            throw e;
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("algorithm '%s': %s".formatted(name, first(e)), e);
        } catch (RuntimeException | Error e) {
            throw new PlanException(name, call, e);
        }
    }

    /** The first line of its message, if it has any. */
    static String first(Throwable thrown) {
        String text = thrown.getMessage() == null ? "" : thrown.getMessage();
        return text.lines().findFirst().orElse("");
    }

    /** Where it was thrown, in the writer's own code as far as that is known. */
    static String place(Throwable thrown) {
        return Stream.of(thrown.getStackTrace())
                .filter(frame -> frame.getFileName() != null)
                .filter(frame -> !frame.getClassName().matches("(java|javax|jdk|sun)\\..*"))
                .findFirst()
                .map(frame -> " (" + frame.getFileName() + ":" + frame.getLineNumber() + ")")
                .orElse("");
    }
}
