package dev.weft.cli.view;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Console;
import dev.weft.report.Conclusion;
import dev.weft.report.RunRecord;
import dev.weft.report.Samples;
import dev.weft.report.Verification;
import dev.weft.report.Views;
import java.util.OptionalDouble;
import java.util.function.Function;

/** The summary for people, in the form of the Ascend example with a few more lines. */
public record Summary(Console console) {

    public void print(RunRecord record) {
        Verification verification = record.verification();
        boolean passed = verification == null || verification.passed();
        if (verification == null) {
            console.info("Not verified (simulated; --verify multiplies on the CPU)");
        } else {
            console.info(
                    "Functional run completed. Verification "
                            + (passed ? "PASSED." : "FAILED.")
                            + (record.simulated() ? " (On the CPU; times are predicted.)" : ""));
            verification(verification);
        }
        views(record, title(record.problem()));
    }

    private static String title(RunRecord.Problem problem) {
        return switch (problem.op()) {
            case "matmul-reduce-scatter" -> "GEMM ReduceScatter";
            case "matmul-allreduce" -> "GEMM AllReduce";
            default -> "AllGather GEMM";
        };
    }

    /**
     * Prints the views and their results, under a heading that says whether the product was
     * correct.
     */
    public void views(RunRecord record, String what) {
        boolean passed = record.verification() == null || record.verification().passed();
        Views views = record.views();
        String kind =
                "%s, %s, %s engine, %s"
                        .formatted(
                                record.execution().device(),
                                record.execution().algorithm(),
                                record.execution().engine(),
                                workers(record.execution()));
        console.print((passed ? "[SUCCESS] " : "[FAILED] ") + what + " (" + kind + ")");
        line("Compute-only:", time(record, Views::computeOnly));
        line("Comm-only:", time(record, Views::commOnly));
        line("Sequential:", time(record, Views::sequential) + "  " + parts(record));
        if (views.ofExample()) {
            line("Baseline:", time(record, Views::baseline) + "  (Weft's gather, then product)");
        }
        line(
                "Pipelined:",
                time(record, Views::pipelined) + text("  %.3f TFLOP/s per rank", record.tflops()));
        boolean unlike = record.execution().sumsUnlikeSequential();
        line(
                "Speedup:",
                speedup(record)
                        + (unlike ? ", which sums by rank and not in K's order" : "")
                        + (views.ofExample() ? overBaseline(views) : ""));
        line("Overlap eff:", efficiency(views, record.problem().exchange()));
        line("Of the limit:", limit(views));
        double progressCpu = record.execution().progressCpu();
        if (!Double.isNaN(progressCpu)) {
            line("Messages:", text("%.1f%% of a core, to keep them moving", 100 * progressCpu));
        }
    }

    /** Prints the conclusion as the last line; there is none if the result is wrong. */
    public void conclusion(RunRecord record) {
        if (record.verification() == null || record.verification().passed()) {
            console.print(Conclusion.of(record).sentence());
        }
    }

    private static String speedup(RunRecord record) {
        Views views = record.views();
        double speedup = views.speedup();
        if (record.execution().isSequential()) {
            return text("%.2fx: the call itself is sequential, nothing overlaps", speedup);
        }
        if (views.predicted()) {
            return text("%.2fx over sequential", speedup);
        }
        return Double.isNaN(views.noise())
                ? text("%.2fx over sequential (too few rounds for a verdict)", speedup)
                // The speedup is 1 / (1 - saved): this is how it changes with saved.
                : text(
                        "%.2fx (+-%.2f) over sequential",
                        speedup, speedup * speedup * views.noise());
    }

    private static String overBaseline(Views views) {
        double speedup = views.us(views.baseline()) / views.us(views.pipelined());
        return text(", %.2fx over the baseline", speedup);
    }

    private static String parts(RunRecord record) {
        String product = text("product %.3f ms", record.views().computeUs() / 1e3);
        String exchange =
                text("%s %.3f ms", record.problem().exchange(), record.views().commUs() / 1e3);
        return record.problem().isSummed()
                ? "(%s + %s)".formatted(product, exchange)
                : "(%s + %s)".formatted(exchange, product);
    }

    private static String limit(Views views) {
        String over = views.overLimit();
        return text(
                "%.1f%% of max(compute-only, comm-only) / pipelined%s",
                100 * views.limitFraction(), over == null ? "" : " (" + over + ")");
    }

    private static String workers(RunRecord.Execution execution) {
        int compute = execution.computeWorkers();
        int lanes = execution.lanes();
        if (execution.machine() != null) {
            return compute + " compute + " + lanes + " comm workers per rank";
        }
        if (execution.peers() == null) {
            return compute + " compute + " + lanes + " comm threads per rank";
        }
        return (execution.peers().equals("staged")
                        ? "peers through host memory"
                        : "peers on the " + execution.peers())
                + ", "
                + (compute > 0 ? compute + " thread blocks + " : "")
                + lanes
                + " copy streams per rank";
    }

    public void verification(Verification verification) {
        console.info(
                "  %sproduct %s, float64 bound %s"
                        + " (%d of %d rows%s), max_abs_err %.3g, rel_err %.3g",
                gathered(verification.gatheredExact()),
                bits(verification),
                verification.withinBound() ? "holds" : "EXCEEDED",
                verification.checkedRows(),
                verification.totalRows(),
                verification.freivalds() ? ", the rest by Freivalds" : "",
                verification.maxAbsErr(),
                verification.relErr());
        if (verification.notFinite() > 0) {
            console.info(
                    "  %d of the checked elements are infinite or NaN, as"
                            + " expected: inputs are, or sums overflow",
                    verification.notFinite());
        }
        if (verification.seedRulePassed() == null) {
            console.info("  no golden.bin for this problem: not compared with one");
        } else if (!verification.seedRulePassed()) {
            console.info("  golden.bin: too many elements differ");
        }
    }

    private static String bits(Verification verification) {
        if (verification.bitwiseEqualToUnfused()) {
            return "bitwise equal to the unfused one";
        }
        return verification.bitsAsPromised()
                ? "not bitwise the unfused one (this engine promises the float64 bound only)"
                : "DIFFERS from the unfused one";
    }

    private static String gathered(Boolean exact) {
        if (exact == null) {
            return "";
        }
        return exact ? "gathered A exact, " : "gathered A WRONG, ";
    }

    private static String efficiency(Views views, String exchange) {
        OptionalDouble efficiency = views.overlapEfficiency();
        if (views.predicted() && efficiency.isEmpty()) {
            return "none (there is no gather or no product)";
        }
        if (efficiency.isEmpty()) {
            return "not measurable (" + views.whyNoEfficiency(exchange) + ")";
        }
        return text(
                "%.1f%% of the smaller of %s and product hidden",
                100 * efficiency.getAsDouble(), exchange);
    }

    private void line(String label, String value) {
        console.line(label, value);
    }

    /** A view's time, followed by the prediction for another machine. */
    public static String time(RunRecord record, Function<Views, Samples> view) {
        Samples samples = view.apply(record.views());
        Views views = record.views();
        if (views.predicted()) {
            return ms(views, samples) + " (predicted)";
        }
        String measured =
                text(
                        "%s (%s %.3f, spread %.3f)",
                        ms(views, samples),
                        views.ofExample() ? "median" : "mean",
                        (views.ofExample() ? samples.median() : samples.mean()) / 1e3,
                        samples.spread() / 1e3);
        RunRecord.Predicted other = record.predicted();
        return other == null
                ? measured
                : "%s [%s: %s predicted]"
                        .formatted(
                                measured,
                                other.machine(),
                                ms(other.views(), view.apply(other.views())));
    }

    /** The view's one number. */
    private static String ms(Views views, Samples samples) {
        return text("%.3f ms", views.us(samples) / 1e3);
    }
}
