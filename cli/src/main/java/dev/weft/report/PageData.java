package dev.weft.report;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * What a page is about: one run, several, or a sweep.
 *
 * @param title the title of the page
 * @param progress null unless something is still running
 * @param runs one, several to compare, or none yet
 * @param sweep null unless it is a sweep's page
 */
public record PageData(String title, Progress progress, List<ShownRun> runs, Sweep sweep) {

    /**
     * How far a running job has come.
     *
     * @param of 0 if unknown
     * @param failed null unless it has ended with an error
     */
    public record Progress(String what, long done, long of, boolean ended, String failed) {}

    /** Writes the fields of a sweep record into the open object. */
    @FunctionalInterface
    public interface Sweep {
        void write(JsonGenerator json) throws IOException;
    }

    public PageData {
        runs = List.copyOf(runs);
    }

    public static PageData of(ShownRun run) {
        return new PageData(run.name(), null, List.of(run), null);
    }

    /** Runs of the same name are told apart by what they computed, and else by a number. */
    public static PageData comparison(List<ShownRun> runs) {
        List<ShownRun> distinct = new ArrayList<>(runs);
        for (UnaryOperator<ShownRun> more :
                List.<UnaryOperator<ShownRun>>of(
                        run -> run.named(run.name() + ": " + run.subtitle()),
                        run -> run.named(run.name() + " #" + (distinct.indexOf(run) + 1)))) {
            List<String> names = distinct.stream().map(ShownRun::name).toList();
            List<ShownRun> longer =
                    distinct.stream()
                            .map(
                                    run ->
                                            Collections.frequency(names, run.name()) > 1
                                                    ? more.apply(run)
                                                    : run)
                            .toList();
            Collections.copy(distinct, longer);
        }
        return new PageData(runs.size() + " runs compared", null, distinct, null);
    }

    public static PageData sweep(String title, Sweep sweep) {
        return new PageData(title, null, List.of(), sweep);
    }

    /** The data of a page that asks for updates. */
    public PageData live(Progress now) {
        return new PageData(title, now, runs, sweep);
    }

    /** Which run was the fastest; null unless several are compared. */
    public Comparison comparison() {
        return runs.size() > 1 ? Comparison.of(runs) : null;
    }

    String kind() {
        return sweep != null ? "sweep" : runs.size() > 1 ? "compare" : "run";
    }
}
