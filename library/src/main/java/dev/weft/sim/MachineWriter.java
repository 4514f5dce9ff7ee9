package dev.weft.sim;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.DefaultIndenter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import com.fasterxml.jackson.core.util.Separators;
import dev.weft.json.Json;
import dev.weft.json.JsonObject;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.io.StringWriter;

/** Writes a {@link Machine} as the text of its file. For one thread. */
final class MachineWriter {

    /** Whole numbers up to this are written without a fraction, and read back exactly. */
    private static final double MAX_WHOLE = 0x1p53;

    private final JsonGenerator json;

    private MachineWriter(JsonGenerator json) {
        this.json = json;
    }

    static String text(Machine machine) throws IOException {
        DefaultIndenter lines = new DefaultIndenter("  ", "\n");
        DefaultPrettyPrinter printer =
                new DefaultPrettyPrinter(
                        Separators.createDefaultInstance()
                                .withObjectFieldValueSpacing(Separators.Spacing.AFTER));
        printer.indentObjectsWith(lines);
        printer.indentArraysWith(lines);
        StringWriter text = new StringWriter();
        try (JsonGenerator json = Json.generator(text, printer)) {
            new MachineWriter(json).machine(machine);
        }
        return text + "\n";
    }

    private void machine(Machine machine) throws IOException {
        json.writeStartObject();
        json.writeStringField("schema", MachineFile.SCHEMA);
        json.writeStringField("name", machine.name());
        if (!machine.description().isEmpty()) {
            json.writeStringField("description", machine.description());
        }
        json.writeArrayFieldStart("sources");
        for (String source : machine.sources()) {
            json.writeString(source);
        }
        json.writeEndArray();
        json.writeObjectFieldStart("engine");
        switch (machine.engine()) {
            case TileEngine engine -> tileEngine(engine);
            case CoreEngine engine -> coreEngine(engine);
        }
        json.writeEndObject();
        json.writeObjectFieldStart("memory");
        number("gbps", machine.memory().gbps());
        number("onChipMib", machine.memory().onChipMib());
        json.writeEndObject();
        overheads(machine.overheads());
        json.writeStringField("consumption", JsonObject.label(machine.consumption()));
        json.writeNumberField("ranksPerNode", machine.ranksPerNode());
        wiring("node", machine.node());
        if (machine.network() != null) {
            wiring("network", machine.network());
        }
        if (!machine.copies().equals(Machine.Copies.PLAIN)) {
            copies(machine.copies());
        }
        json.writeEndObject();
    }

    private void tileEngine(TileEngine engine) throws IOException {
        json.writeStringField("kind", JsonObject.label(MachineReader.Kind.TILES));
        json.writeNumberField("units", engine.units());
        json.writeNumberField("tileRows", engine.tileRows());
        json.writeNumberField("tileCols", engine.tileCols());
        json.writeObjectFieldStart("gflops");
        for (DType type : DType.values()) {
            if (engine.knows(type)) {
                number(type.label(), engine.gflops().get(type));
            }
        }
        json.writeEndObject();
        number("tileUs", engine.tileUs());
    }

    private void coreEngine(CoreEngine engine) throws IOException {
        json.writeStringField("kind", JsonObject.label(MachineReader.Kind.CORES));
        json.writeNumberField("cores", engine.cores());
        number("capacity", engine.capacity());
        json.writeObjectFieldStart("costs");
        for (DType type : DType.values()) {
            if (engine.knows(type)) {
                CoreEngine.Costs costs = engine.costs().get(type);
                json.writeObjectFieldStart(type.label());
                number("gflops", costs.gflops());
                number("rowNs", costs.rowNs());
                number("bNs", costs.bNs());
                number("outNs", costs.outNs());
                json.writeEndObject();
            }
        }
        json.writeEndObject();
        number("blockUs", engine.blockUs());
        json.writeNumberField("rowQuantum", engine.rowQuantum());
        json.writeNumberField("blockRows", engine.blockRows());
    }

    private void overheads(Machine.Overheads overheads) throws IOException {
        json.writeObjectFieldStart("overheads");
        number("callUs", overheads.callUs());
        number("transferUs", overheads.transferUs());
        number("signalUs", overheads.signalUs());
        number("wakeUs", overheads.wakeUs());
        json.writeEndObject();
    }

    private void copies(Machine.Copies copies) throws IOException {
        json.writeObjectFieldStart("copies");
        number("tileSlowdown", copies.tileSlowdown());
        number("narrowBytes", copies.narrowBytes());
        number("narrowRowNs", copies.narrowRowNs());
        number("farBytes", copies.farBytes());
        number("farRowNs", copies.farRowNs());
        json.writeEndObject();
    }

    private void wiring(String name, Wiring wiring) throws IOException {
        json.writeObjectFieldStart(name);
        json.writeStringField("topology", JsonObject.label(wiring.topology()));
        if (!wiring.torus().isEmpty()) {
            json.writeArrayFieldStart("torus");
            for (int size : wiring.torus()) {
                json.writeNumber(size);
            }
            json.writeEndArray();
        }
        number("latencyUs", wiring.latencyUs());
        number("gbps", wiring.gbps());
        number("laneGbps", wiring.laneGbps());
        number("rampBytes", wiring.rampBytes());
        json.writeBooleanField("duplex", wiring.duplex());
        json.writeBooleanField("portPerRank", wiring.portPerRank());
        number("coreGbps", wiring.coreGbps());
        json.writeBooleanField("direct", wiring.direct());
        json.writeEndObject();
    }

    private void number(String name, double value) throws IOException {
        if (value == Math.rint(value) && Double.compare(value, 0) >= 0 && value <= MAX_WHOLE) {
            json.writeNumberField(name, (long) value);
        } else {
            json.writeNumberField(name, value);
        }
    }
}
