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
record GuardedWriter(PlanWriter writer) implements PlanWriter {

    /** The writer itself if it is Weft's own: that needs no guard. */
    static PlanWriter of(PlanWriter writer) {
        boolean own = writer.getClass().getPackageName().equals(PlanWriter.class.getPackageName());
        return own ? writer : new GuardedWriter(writer);
    }

    @Override
    public String label() {
        String label = guarded(writer.getClass().getName(), "label()", writer::label);
        return label != null ? label : writer.getClass().getName();
    }

    @Override
    public boolean isSymmetric() {
        return guarded(label(), "isSymmetric()", writer::isSymmetric);
    }

    @Override
    public Chunks cut(Chunks given) {
        return notNull(guarded(label(), "cut()", () -> writer.cut(given)), "cut()", "chunks");
    }

    @Override
    public List<RankPlan> plans(Chunks chunks, int lanes, Hosts hosts) {
        int ranks = chunks.shards().ranks();
        String expected = "a plan for each of " + ranks + " ranks";
        List<RankPlan> plans =
                notNull(
                        guarded(label(), "plans()", () -> writer.plans(chunks, lanes, hosts)),
                        "plans()",
                        expected);
        if (plans instanceof WrittenPlans) {
            return plans;
        }
        int size = guarded(label(), "plans().size()", plans::size);
        if (size != ranks) {
            throw new PlanException(
                    label(), "plans() returned %s plans: expected %s", size, expected);
        }
        return new AbstractList<>() {
            @Override
            public RankPlan get(int rank) {
                String call = "plans().get(" + rank + ")";
                return notNull(guarded(label(), call, () -> plans.get(rank)), call, "a plan");
            }

            @Override
            public int size() {
                return size;
            }
        };
    }

    private <T> T notNull(T result, String call, String expected) {
        return notNull(label(), result, call, expected);
    }

    private static <T> T notNull(String name, T result, String call, String expected) {
        if (result == null) {
            throw new PlanException(name, "%s returned null: expected %s", call, expected);
        }
        return result;
    }

    /** The same for a way to sum. */
    record OfSums(ReductionWriter writer) implements ReductionWriter {

        @Override
        public String label() {
            String label = guarded(writer.getClass().getName(), "label()", writer::label);
            return label != null ? label : writer.getClass().getName();
        }

        @Override
        public Order order() {
            return notNull(
                    label(), guarded(label(), "order()", writer::order), "order()", "an order");
        }

        @Override
        public boolean gives(Order wanted) {
            return guarded(label(), "gives()", () -> writer.gives(wanted));
        }

        @Override
        public List<StepPlan> plans(ReductionRequest request) {
            String expected = "a plan for each of " + request.ranks() + " ranks";
            List<StepPlan> plans =
                    guarded(
                            label(),
                            "plans()",
                            () -> {
                                List<StepPlan> written = writer.plans(request);
                                return written == null ? null : List.copyOf(written);
                            });
            if (notNull(label(), plans, "plans()", expected).size() != request.ranks()) {
                throw new PlanException(
                        label(), "plans() returned %s plans: expected %s", plans.size(), expected);
            }
            return plans;
        }
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
