package dev.weft.json;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.MinimalPrettyPrinter;
import java.io.IOException;

/** The layout of long arrays: no blanks, but one line per element, which an editor can show. */
public final class ElementPerLine extends MinimalPrettyPrinter {

    private static final long serialVersionUID = 1;

    private final String colon;
    private final String end;

    public ElementPerLine(String colon, String end) {
        this.colon = colon;
        this.end = end;
    }

    @Override
    public void writeObjectFieldValueSeparator(JsonGenerator json) throws IOException {
        json.writeRaw(colon);
    }

    @Override
    public void writeStartArray(JsonGenerator json) throws IOException {
        json.writeRaw("[\n");
    }

    @Override
    public void writeArrayValueSeparator(JsonGenerator json) throws IOException {
        json.writeRaw(",\n");
    }

    @Override
    public void writeEndArray(JsonGenerator json, int values) throws IOException {
        json.writeRaw(end);
    }
}
