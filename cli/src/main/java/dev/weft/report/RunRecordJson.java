package dev.weft.report;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.json.JsonField;
import dev.weft.json.RecordJson;
import dev.weft.trace.Timeline;
import java.io.IOException;
import java.util.List;

/**
 * A run record as its file has it: field names, order and units are those of docs/run-record.md.
 */
public record RunRecordJson(
        String schema,
        @JsonField(optional = true) String label,
        @JsonField(derived = true) boolean simulated,
        RunRecord.Problem problem,
        @JsonField(flat = true) Measured measured,
        @JsonField(optional = true) Verified verification,
        @JsonField(some = true) List<Rank> ranks,
        RunRecord.Environment environment) {

    /** How a run was executed, its views and their results. */
    record Measured(
            @JsonField(flat = true) RunRecord.Execution execution,
            AllViews views,
            @JsonField(derived = true) double speedup,
            @JsonField(derived = true) double overlapEfficiency,
            @JsonField(derived = true) double limitFraction,
            double tflops,
            @JsonField(derived = true) Conclusion conclusion,
            @JsonField(omitted = true) Predicted predicted) {

        static Measured of(RunRecord record) {
            Views views = record.views();
            RunRecord.Predicted other = record.predicted();
            return new Measured(
                    record.execution(),
                    AllViews.of(views),
                    views.speedup(),
                    views.overlapEfficiency().orElse(Double.NaN),
                    views.limitFraction(),
                    record.tflops(),
                    Conclusion.of(record),
                    other == null
                            ? null
                            : new Predicted(other.machine(), AllViews.of(other.views())));
        }
    }

    record Predicted(String machine, AllViews views) {}

    record AllViews(
            View computeOnly,
            View commOnly,
            Sequential sequential,
            View pipelined,
            @JsonField(omitted = true) View baseline) {

        private static AllViews of(Views views) {
            return new AllViews(
                    View.of(views.computeOnly()),
                    View.of(views.commOnly()),
                    new Sequential(
                            View.of(views.sequential()),
                            View.of(views.sequentialComm()),
                            View.of(views.sequentialCompute())),
                    View.of(views.pipelined()),
                    views.ofExample() ? View.of(views.baseline()) : null);
        }

        Views views(boolean predicted) {
            return new Views(
                    computeOnly.samples(),
                    commOnly.samples(),
                    sequential.all.samples(),
                    sequential.comm.samples(),
                    sequential.compute.samples(),
                    pipelined.samples(),
                    predicted,
                    baseline == null ? null : baseline.samples());
        }
    }

    record Sequential(@JsonField(flat = true) View all, View comm, View compute) {}

    record View(
            @JsonField(derived = true) double medianUs,
            @JsonField(derived = true) double meanUs,
            @JsonField(derived = true) double spreadUs,
            @JsonField(some = true) List<Double> samplesUs) {

        private static View of(Samples samples) {
            return new View(samples.median(), samples.mean(), samples.spread(), samples.us());
        }

        private Samples samples() {
            return new Samples(samplesUs);
        }
    }

    record Verified(
            @JsonField(derived = true) boolean passed,
            @JsonField(flat = true) Verification verification) {}

    /** The reader checks that rank and group are the problem's. */
    record Rank(
            @JsonField(least = Integer.MIN_VALUE) int rank,
            @JsonField(least = Integer.MIN_VALUE) int group,
            long shardRows,
            long chunkRows,
            long startNs,
            long elapsedNs,
            List<Timeline.Track> tracks) {

        private static Rank of(RunRecord.Rank rank) {
            Timeline timeline = rank.timeline();
            return new Rank(
                    rank.rank(),
                    rank.group(),
                    rank.shardRows(),
                    rank.chunkRows(),
                    timeline.startNs(),
                    timeline.elapsedNs(),
                    timeline.tracks());
        }
    }

    /** Writes the record's fields into the open object. */
    public static void write(RunRecord record, JsonGenerator json) throws IOException {
        Verification verification = record.verification();
        RunRecordJson all =
                new RunRecordJson(
                        RunRecord.SCHEMA,
                        record.label(),
                        record.simulated(),
                        record.problem(),
                        Measured.of(record),
                        verification == null
                                ? null
                                : new Verified(verification.passed(), verification),
                        record.ranks().stream().map(Rank::of).toList(),
                        record.environment());
        RecordJson.fields(json, all);
    }

    /** Writes how a record was measured, its views and their results into the open object. */
    public static void measured(RunRecord record, JsonGenerator json) throws IOException {
        RecordJson.fields(json, Measured.of(record));
    }

    /** Writes the fields of a view into the open object. */
    public static void samples(Samples samples, JsonGenerator json) throws IOException {
        RecordJson.fields(json, View.of(samples));
    }
}
