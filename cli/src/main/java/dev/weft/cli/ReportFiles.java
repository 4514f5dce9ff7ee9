package dev.weft.cli;

import dev.weft.report.CallSpans;
import dev.weft.report.PageData;
import dev.weft.report.ReportPage;
import dev.weft.report.ShownRun;
import dev.weft.report.TraceJson;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/** Where {@code --report} and {@code --trace} write; each file is there whole or not at all. */
final class ReportFiles {

    private final ReportOptions options;
    private final TextTarget report;
    private final TextTarget trace;

    /** Refuses targets that cannot be written, before anything runs. */
    ReportFiles(ReportOptions options) {
        this.options = options;
        this.report = TextTarget.file("--report", options.report);
        this.trace = TextTarget.file("--trace", options.trace);
        refuseSame("--report", options.report, "--trace", options.trace);
    }

    /** Two things cannot be in one file: the last to be written would be all that is left. */
    void refuseSameAs(String option, String file) {
        refuseSame(option, file, "--report", options.report);
        refuseSame(option, file, "--trace", options.trace);
    }

    private static void refuseSame(String option, String file, String other, String otherFile) {
        if (file != null && otherFile != null && path(file).equals(path(otherFile))) {
            throw new UsageException(
                    other + " " + otherFile + ": is that of " + option + ", expected another file");
        }
    }

    private static Path path(String file) {
        return Path.of(file).toAbsolutePath().normalize();
    }

    /** One run: its page and its trace. */
    void write(ShownRun run, Console console) throws IOException {
        page(PageData.of(run), console);
        trace(run, console);
    }

    void page(PageData page, Console console) throws IOException {
        report.write(writer -> ReportPage.write(page, Version.number(), writer));
        tell(options.report, "the report", console);
    }

    void trace(ShownRun run, Console console) throws IOException {
        trace(run.call(), run.flopsPerRow(), run.subtitle(), console);
    }

    /**
     * @param subtitle what the call was
     */
    void trace(CallSpans call, double flopsPerRow, String subtitle, Console console)
            throws IOException {
        Map<String, String> about = Map.of("weft", Version.number(), "run", subtitle);
        trace.write(writer -> TraceJson.write(call, flopsPerRow, about, writer));
        tell(options.trace, "the trace (open it in Perfetto or chrome://tracing)", console);
    }

    private static void tell(String file, String what, Console console) {
        if (file != null) {
            console.info("Wrote " + what + " to " + file);
        }
    }
}
