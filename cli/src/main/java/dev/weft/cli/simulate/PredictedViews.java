package dev.weft.cli.simulate;

import dev.weft.report.Samples;
import dev.weft.report.Views;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.search.PlanSearch.Budget;
import dev.weft.sim.Prediction;
import dev.weft.trace.View;
import java.util.List;

/** Prices the views that a real run measures. */
public final class PredictedViews {

    private PredictedViews() {}

    /**
     * The views of the Ascend example: sequential is the call's own transfers, then its product.
     */
    public static Views ofExample(PlanSearch search, Candidate chosen, Prediction call) {
        Views own = of(search, chosen, call);
        double comm = own.commOnly().median();
        double compute = own.computeOnly().median();
        return new Views(
                own.computeOnly(),
                own.commOnly(),
                new Samples(List.of(comm + compute)),
                own.commOnly(),
                own.computeOnly(),
                own.pipelined(),
                true,
                own.sequential());
    }

    /**
     * @param call the prediction of the whole call
     */
    public static Views of(PlanSearch search, Candidate chosen, Prediction call) {
        Prediction sequential = search.price(baseline(search, chosen), View.PIPELINED);
        double movingNs =
                search.problem().sums() == null
                        ? sequential.arrivedNs()
                        : sequential.ns() - sequential.multipliedNs();
        return new Views(
                samples(search.price(chosen, View.COMPUTE_ONLY).ns()),
                samples(search.price(chosen, View.COMM_ONLY).ns()),
                samples(sequential.ns()),
                samples(movingNs),
                samples(sequential.ns() - movingNs),
                samples(call.ns()),
                true,
                null);
    }

    /** One sample is as good as many. */
    public static Samples samples(double ns) {
        return new Samples(List.of(ns / 1e3));
    }

    /** What the call is compared with: the same chunks, or the best ones if none are given. */
    private static Candidate baseline(PlanSearch search, Candidate chosen) {
        if (search.problem().sums() != null) {
            // Like a real run, which times its sums by rank in Weft's own chunks.
            return search.candidate(search.sequential());
        }
        return search.problem().cut().givesRows() || search.hasOwnKernel()
                ? search.candidate(search.sequential(), chosen.cut())
                : search.sequential(Budget.THOROUGH);
    }
}
