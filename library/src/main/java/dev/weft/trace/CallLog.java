package dev.weft.trace;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.fabric.Fabric;
import dev.weft.files.AtomicFile;
import dev.weft.json.Json;
import dev.weft.json.RecordJson;
import dev.weft.trace.Timeline.Kind;
import dev.weft.trace.Timeline.Span;
import dev.weft.trace.Timeline.Track;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * What one rank of a program did in several calls and between them. {@code weft report} draws the
 * files of all ranks of a host as one timeline:
 *
 * <pre>{@code
 * CallLog log = new CallLog(fabric);
 * log.call("up", up.call(shard).timeline());
 * long start = System.nanoTime();
 * normalize(rows);
 * log.work("norm", start);
 * log.write(Path.of("layer-" + fabric.rank() + ".json"));
 * }</pre>
 *
 * <p>One thread at a time may use it.
 */
public final class CallLog {

    /** The schema of the record that {@link #write} makes. */
    public static final String SCHEMA = "weft.calls/1";

    /** The track of a program's own work. */
    private static final String PROGRAM = "program";

    private record Call(String name, long startNs, long elapsedNs, List<Track> tracks) {}

    private record Calls(String schema, int rank, int ranks, List<Call> calls) {}

    private final int rank;
    private final int ranks;
    private final List<Call> calls = new ArrayList<>();

    public CallLog(Fabric fabric) {
        rank = fabric.rank();
        ranks = fabric.size();
    }

    /** Adds a call of an operator. All ranks give their calls the same names, in the same order. */
    public void call(String name, Timeline timeline) {
        calls.add(new Call(name, timeline.startNs(), timeline.elapsedNs(), timeline.tracks()));
    }

    /** Adds work of the program itself, which ends now. */
    public void work(String name, long startNanoTime) {
        long elapsed = System.nanoTime() - startNanoTime;
        Span span = Span.local(Kind.COMPUTE, rank, rank, 0, 0, 0, elapsed);
        Track track = new Track(PROGRAM, List.of(span));
        call(name, new Timeline(rank, startNanoTime, elapsed, List.of(track)));
    }

    /** Writes everything that was added, replacing the file's content. */
    public void write(Path file) throws IOException {
        StringWriter text = new StringWriter();
        try (JsonGenerator json = Json.generator(text)) {
            json.writeStartObject();
            RecordJson.fields(json, new Calls(SCHEMA, rank, ranks, calls));
            json.writeEndObject();
        }
        AtomicFile.write(file, text.toString());
    }
}
