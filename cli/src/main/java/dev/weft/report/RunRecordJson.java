package dev.weft.report;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.json.Json;
import dev.weft.op.exec.TimelineJson;
import java.io.IOException;

/** Writes a run record as JSON; field names and units are those of docs/run-record.md. */
public final class RunRecordJson {

    private final JsonGenerator json;

    private RunRecordJson(JsonGenerator json) {
        this.json = json;
    }

    /** Writes the record's fields into the open object. */
    public static void write(RunRecord record, JsonGenerator json) throws IOException {
        new RunRecordJson(json).write(record);
    }

    private void write(RunRecord record) throws IOException {
        json.writeStringField("schema", RunRecord.SCHEMA);
        json.writeStringField("label", record.label());
        json.writeBooleanField("simulated", record.simulated());
        RecordJson.field(json, "problem", record.problem());
        measured(record);
        verification(record.verification());
        json.writeArrayFieldStart("ranks");
        for (RunRecord.Rank rank : record.ranks()) {
            rank(rank);
        }
        json.writeEndArray();
        RecordJson.field(json, "environment", record.environment());
    }

    /** Writes how a record was measured, its views and their results into the open object. */
    public static void measured(RunRecord record, JsonGenerator json) throws IOException {
        new RunRecordJson(json).measured(record);
    }

    private void measured(RunRecord record) throws IOException {
        RecordJson.fields(json, record.execution());
        views(record.views());
        json.writeNumberField("speedup", record.views().speedup());
        Json.numberOrNull(
                json, "overlapEfficiency", record.views().overlapEfficiency().orElse(Double.NaN));
        json.writeNumberField("limitFraction", record.views().limitFraction());
        json.writeNumberField("tflops", record.tflops());
        RecordJson.field(json, "conclusion", Conclusion.of(record));
        if (record.predicted() != null) {
            json.writeObjectFieldStart("predicted");
            json.writeStringField("machine", record.predicted().machine());
            views(record.predicted().views());
            json.writeEndObject();
        }
    }

    private void views(Views views) throws IOException {
        json.writeObjectFieldStart("views");
        view("computeOnly", views.computeOnly());
        view("commOnly", views.commOnly());
        json.writeObjectFieldStart("sequential");
        samples(views.sequential(), json);
        view("comm", views.sequentialComm());
        view("compute", views.sequentialCompute());
        json.writeEndObject();
        view("pipelined", views.pipelined());
        if (views.baseline() != null) {
            view("baseline", views.baseline());
        }
        json.writeEndObject();
    }

    private void view(String name, Samples samples) throws IOException {
        json.writeObjectFieldStart(name);
        samples(samples, json);
        json.writeEndObject();
    }

    /** Writes the fields of a view into the open object. */
    public static void samples(Samples samples, JsonGenerator json) throws IOException {
        json.writeNumberField("medianUs", samples.median());
        json.writeNumberField("meanUs", samples.mean());
        json.writeNumberField("spreadUs", samples.spread());
        RecordJson.field(json, "samplesUs", samples.us());
    }

    private void verification(Verification verification) throws IOException {
        if (verification == null) {
            json.writeNullField("verification");
            return;
        }
        json.writeObjectFieldStart("verification");
        json.writeBooleanField("passed", verification.passed());
        RecordJson.field(json, "promise", verification.promise());
        RecordJson.field(json, "gatheredExact", verification.gatheredExact());
        json.writeBooleanField("bitwiseEqualToUnfused", verification.bitwiseEqualToUnfused());
        json.writeBooleanField("withinBound", verification.withinBound());
        RecordJson.field(json, "seedRulePassed", verification.seedRulePassed());
        json.writeNumberField("maxAbsErr", verification.maxAbsErr());
        json.writeNumberField("relErr", verification.relErr());
        json.writeNumberField("checkedRows", verification.checkedRows());
        json.writeNumberField("totalRows", verification.totalRows());
        json.writeBooleanField("freivalds", verification.freivalds());
        json.writeNumberField("notFinite", verification.notFinite());
        json.writeEndObject();
    }

    private void rank(RunRecord.Rank rank) throws IOException {
        json.writeStartObject();
        json.writeNumberField("rank", rank.rank());
        json.writeNumberField("group", rank.group());
        json.writeNumberField("shardRows", rank.shardRows());
        json.writeNumberField("chunkRows", rank.chunkRows());
        TimelineJson.write(json, rank.timeline());
        json.writeEndObject();
    }
}
