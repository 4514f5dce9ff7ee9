package dev.weft.cli.simulate;

import dev.weft.report.Samples;
import dev.weft.report.Views;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.sim.Part;
import dev.weft.sim.Prediction;
import java.util.List;

/** Prices the views that a real run measures. */
public final class SimViews {

    private SimViews() {}

    /**
     * @param call the whole call of {@code chosen}
     * @param baseline gathers first and multiplies after
     */
    public static Views of(
            PlanSearch search, Candidate chosen, Prediction call, Candidate baseline) {
        Prediction sequential = search.price(baseline, Part.WHOLE);
        return new Views(
                us(search.price(chosen, Part.PRODUCT).ns()),
                us(search.price(chosen, Part.GATHER).ns()),
                us(sequential.ns()),
                us(sequential.gatherNs()),
                us(sequential.ns() - sequential.gatherNs()),
                us(call.ns()),
                true);
    }

    private static Samples us(double ns) {
        return new Samples(List.of(ns / 1e3));
    }
}
