package dev.weft.compat.command;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.console.Console;
import dev.weft.cli.view.Summary;
import dev.weft.compat.Sb2sbLayout;
import dev.weft.json.RecordJson;
import dev.weft.report.CallSpans;
import dev.weft.report.RunRecord;
import dev.weft.report.RunRecordJson;
import dev.weft.report.Samples;
import dev.weft.report.ShownRun;
import dev.weft.report.ShownRun.Detail;
import dev.weft.report.ShownRun.Fact;
import dev.weft.report.ShownRun.State;
import dev.weft.report.ShownRun.Verdict;
import dev.weft.report.ShownRun.View;
import dev.weft.report.Views;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The results of a gather. Its record has one view, comm-only; instead of the unfused call it has
 * the plain copy, which is not simulated.
 *
 * @param programs how many programs of a rank have tiles
 */
record GatherReport(GatherRun run, RunRecord record, int programs) {

    private static final Map<Sb2sbLayout, String> NAMES =
            Map.of(
                    Sb2sbLayout.UNTILED, "sb2sb",
                    Sb2sbLayout.TILED, "sb2sb tiled",
                    Sb2sbLayout.ROWS, "rows");

    private Samples gather() {
        return record.views().commOnly();
    }

    private Samples copy() {
        return record.views().sequential();
    }

    private boolean exact() {
        return record.verification() == null || record.verification().passed();
    }

    private long received() {
        return run.receivedBytes(run.ranks());
    }

    private double gbPerSecond(Samples samples) {
        return samples.median() == 0 ? 0 : received() / samples.median() / 1e3;
    }

    private double shareOfCopy() {
        double copied = gbPerSecond(copy());
        return copied == 0 ? 0 : gbPerSecond(gather()) / copied;
    }

    void print(Console console) {
        console.print(
                "%s AllGather %s (%s, %s, %s in %s%s, [%s, %s] %s each)"
                        .formatted(
                                exact() ? "[SUCCESS]" : "[FAILED]",
                                NAMES.get(run.layout()),
                                record.execution().device(),
                                record.execution().algorithm(),
                                SourceCommand.count(record.problem().ranks(), "rank"),
                                SourceCommand.count(run.groups().count(), "group"),
                                run.idle(record.problem().ranks()),
                                run.m(),
                                run.k(),
                                run.type().label()));
        if (!record.simulated()) {
            console.line("Bytes:", exact() ? "exact on every rank" : "WRONG on some rank");
        }
        console.line("Gather:", Summary.time(record, Views::commOnly) + perRank(gather()));
        if (!record.simulated()) {
            String time = Summary.time(record.beside(null), Views::sequential);
            console.line("Plain copy:", time + perRank(copy()));
            console.line(
                    "Of the copy:",
                    text(
                            "%.1f%% of the rate of a plain copy of the same %d bytes per rank",
                            100 * shareOfCopy(), received()));
        }
        console.info("No product: there is neither a compute-only nor a pipelined view");
    }

    private String perRank(Samples samples) {
        return text("  %.2f GB/s per rank", gbPerSecond(samples));
    }

    void write(JsonGenerator json) throws IOException {
        RecordJson.field(json, "kind", run.layout());
        json.writeNumberField("ranks", record.problem().ranks());
        json.writeNumberField("groups", run.groups().count());
        json.writeStringField("replicaGroups", run.groups().toString());
        json.writeNumberField("rows", run.m());
        json.writeNumberField("cols", run.k());
        json.writeStringField("dtype", run.type().label());
        json.writeNumberField("lnc", run.lnc());
        json.writeNumberField("programs", programs);
        json.writeNumberField("seed", record.problem().seed());
        RecordJson.fields(json, record.execution());
        RecordJson.field(json, "exact", record.simulated() ? null : exact());
        json.writeNumberField("receivedBytesPerRank", received());
        write(json, "gather", gather());
        if (!record.simulated()) {
            write(json, "plainCopy", copy());
        }
    }

    private void write(JsonGenerator json, String name, Samples samples) throws IOException {
        json.writeObjectFieldStart(name);
        RunRecordJson.samples(samples, json);
        json.writeNumberField("gbPerSecond", gbPerSecond(samples));
        json.writeEndObject();
    }

    ShownRun shown(CallSpans call) {
        boolean simulated = record.simulated();
        double ms = gather().median() / 1e3;
        double rate = gbPerSecond(gather());
        String how =
                simulated
                        ? "predicted"
                        : text(
                                "median of %d, spread %.3f ms",
                                gather().us().size(), gather().spread() / 1e3);
        String rule = "bytes from peers by the median time";
        List<Fact> facts = new ArrayList<>();
        facts.add(new Fact("time", "Time", ms * 1e3, text("%.3f ms", ms), how));
        facts.add(new Fact("gbPerSecond", "GB/s per rank", rate, text("%.2f", rate), rule));
        List<View> views = new ArrayList<>();
        views.add(new View("commOnly", "Gather", gather(), List.of()));
        if (!simulated) {
            double share = shareOfCopy();
            String percent = text("%.1f%%", 100 * share);
            String copied = text("which makes %.2f GB/s", gbPerSecond(copy()));
            facts.add(new Fact("ofTheCopy", "Of a plain copy", share, percent, copied));
            views.add(new View("copy", "Plain copy", copy(), List.of()));
        }
        double bytesPerRow = (double) run.k() * run.type().bytes();
        return new ShownRun(
                "weft gather",
                text(
                        "%d ranks in %d groups%s, %s, [%d x %d] each, %s",
                        record.problem().ranks(),
                        run.groups().count(),
                        run.idle(record.problem().ranks()),
                        record.execution().algorithm(),
                        run.m(),
                        run.k(),
                        run.type().label()),
                simulated,
                verdict(),
                null,
                facts,
                List.of(
                        new Detail("Programs per rank", "" + programs),
                        new Detail("Seed", "" + record.problem().seed())),
                views,
                call,
                bytesPerRow,
                0,
                ShownRun.Analysis.of(call, bytesPerRow, CallSpans.TrackKind.LANE),
                null);
    }

    private Verdict verdict() {
        if (record.simulated()) {
            return new Verdict(
                    State.PREDICTED, "simulated: times are predicted, nothing was moved");
        }
        return exact()
                ? new Verdict(State.PASSED, "every byte is exact on every rank")
                : new Verdict(State.FAILED, "wrong on some rank: see what the command printed");
    }
}
