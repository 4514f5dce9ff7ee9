package dev.weft.report;

import java.io.IOException;
import java.io.Writer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * A record's way from a file to a page and a trace, opened to the fuzzer. Any thread may call it.
 */
public final class FuzzedRecord {

    private FuzzedRecord() {}

    /** Reads a record and writes all that {@code weft report} makes of it, to nowhere. */
    public static void show(Path file) throws IOException {
        RecordReader.Read read = RecordReader.read(file);
        Writer nowhere = Writer.nullWriter();
        if (read.sweep() != null) {
            PageJson.write(PageData.sweep(read.machine(), read.sweep()), "0", nowhere);
            return;
        }
        ShownRun run =
                read.calls() != null
                        ? CallsRecord.shown(List.of(read.calls()), List.of())
                        : RunView.of(read.run(), "a run");
        PageJson.write(PageData.of(run), "0", nowhere);
        TraceJson.write(run.call(), run.flopsPerRow(), Map.of("run", run.subtitle()), nowhere);
    }
}
