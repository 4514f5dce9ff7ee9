package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.ReductionWriter;
import dev.weft.tensor.DType;
import java.util.Arrays;
import java.util.List;

/** Checks the values of single options; an error says what was expected. */
public final class OptionValues {

    /** The most ranks of a world. */
    public static final int MOST_RANKS = 4096;

    /** The orders that can be requested: an algorithm's own cannot. */
    public static final List<Order> ORDERS =
            List.of(Order.WHOLE, Order.BY_RANK, Order.BY_RANK_BF16);

    private OptionValues() {}

    public static long between(String option, long value, long least, long most) {
        if (value < least || value > most) {
            throw new UsageException("%s %s: expected %s to %s", option, value, least, most);
        }
        return value;
    }

    public static int ranks(int ranks) {
        return (int) between("--n-ranks", ranks, 1, MOST_RANKS);
    }

    public static DType type(String option, String label) {
        return DType.UNSCALED.stream()
                .filter(type -> type.label().equals(label))
                .findFirst()
                .orElseThrow(
                        () ->
                                new UsageException(
                                        "%s: unknown dtype '%s': expected fp32, fp16 or bf16",
                                        option, label));
    }

    /** One of Weft's algorithms, or one on the class path. */
    public static GatherWriter algorithm(String label) {
        return UsageException.checked("--algorithm: ", () -> GatherWriter.named(label));
    }

    /**
     * The order in which products are summed.
     *
     * @param label null if none was given
     * @param otherwise the order then
     */
    public static Order order(String op, String label, Order otherwise) {
        if (label != null && op.equals(ProblemSpec.GATHER)) {
            throw new UsageException(
                    "--order %s with --op %s, which sums nothing over ranks: expected --op %s or"
                            + " %s",
                    label, op, ProblemSpec.SCATTER, ProblemSpec.ALL);
        }
        return label == null ? otherwise : order(label);
    }

    private static Order order(String label) {
        String known =
                oneOf("--order", label, ORDERS.stream().map(Order::label).toArray(String[]::new));
        return ORDERS.stream().filter(one -> one.label().equals(known)).findFirst().orElseThrow();
    }

    /** A way to sum products: one of Weft's, or one on the class path. */
    public static ReductionWriter reduction(String op, String label) {
        return UsageException.checked(
                "--algorithm with --op " + op + ": ", () -> ReductionWriter.named(label));
    }

    /** The writer of an operator's plans with this name. */
    public static PlanWriter writer(String op, String label) {
        return op.equals(ProblemSpec.GATHER) ? algorithm(label) : reduction(op, label);
    }

    public static String oneOf(String option, String value, String... allowed) {
        if (!Arrays.asList(allowed).contains(value)) {
            throw new UsageException(
                    option + " '" + value + "': expected one of " + String.join(", ", allowed));
        }
        return value;
    }
}
