package dev.weft.cli.simulate;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.plan.Lane;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RowBlock;
import dev.weft.plan.Transfer;
import java.io.IOException;
import java.util.List;
import java.util.Locale;

/** The plans of all ranks as the field {@code plan} of docs/sweep-record.md. */
final class PlanJson {

    private PlanJson() {}

    static void write(List<RankPlan> plans, JsonGenerator json) throws IOException {
        RankPlan first = plans.getFirst();
        json.writeObjectFieldStart("plan");
        json.writeStringField("name", first.name());
        json.writeStringField("storage", first.storage().name().toLowerCase(Locale.ROOT));
        json.writeBooleanField("gatherFirst", first.pacing().gatherFirst());
        json.writeBooleanField("anyGather", first.pacing().anyGather());
        json.writeNumberField("stepRows", first.pacing().stepRows());
        json.writeArrayFieldStart("ranks");
        for (RankPlan plan : plans) {
            json.writeStartObject();
            json.writeArrayFieldStart("lanes");
            for (Lane lane : plan.lanes()) {
                json.writeStartArray();
                for (Transfer transfer : lane.transfers()) {
                    transfer(transfer, json);
                }
                json.writeEndArray();
            }
            json.writeEndArray();
            json.writeArrayFieldStart("consumption");
            for (RowBlock block : plan.consumption()) {
                numbers(json, block.source(), block.firstRow(), block.rows());
            }
            json.writeEndArray();
            json.writeFieldName("releases");
            numbers(json, plan.releases().stream().mapToLong(Integer::longValue).toArray());
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeEndObject();
    }

    private static void transfer(Transfer transfer, JsonGenerator json) throws IOException {
        json.writeStartObject();
        json.writeNumberField("from", transfer.from());
        json.writeNumberField("to", transfer.to());
        json.writeNumberField("source", transfer.source());
        json.writeNumberField("chunk", transfer.chunk());
        json.writeStringField("by", transfer.initiator().name().toLowerCase(Locale.ROOT));
        json.writeNumberField("credit", transfer.credit());
        json.writeEndObject();
    }

    private static void numbers(JsonGenerator json, long... values) throws IOException {
        json.writeArray(values, 0, values.length);
    }
}
