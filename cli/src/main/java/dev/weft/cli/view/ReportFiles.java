package dev.weft.cli.view;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.TextTarget;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.Version;
import dev.weft.cli.options.ReportOptions;
import dev.weft.report.CallSpans;
import dev.weft.report.PageData;
import dev.weft.report.ReportPage;
import dev.weft.report.ShownRun;
import dev.weft.report.TraceJson;
import java.io.IOException;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;

/** Where {@code --report} and {@code --trace} write; files are written completely or not at all. */
public final class ReportFiles {

    private final ReportOptions options;
    private final TextTarget report;
    private final TextTarget trace;

    /** Refuses targets that cannot be written, before anything runs. */
    public ReportFiles(ReportOptions options) {
        this.options = options;
        checkEnding("--report", options.report, ".html", ".htm");
        checkEnding("--trace", options.trace, ".json");
        this.report = TextTarget.file("--report", options.report);
        this.trace = TextTarget.file("--trace", options.trace);
    }

    /** Another extension would suggest another kind of file. */
    private static void checkEnding(String option, String file, String... endings) {
        if (file == null) {
            return;
        }
        String name = file.substring(file.lastIndexOf('/') + 1).toLowerCase(Locale.ROOT);
        if (name.contains(".") && Arrays.stream(endings).noneMatch(name::endsWith)) {
            throw new UsageException(
                    "%s %s: expected a name that ends in %s", option, file, endings[0]);
        }
    }

    /** One run: its page and its trace. */
    public void write(ShownRun run, Console console) throws IOException {
        page(PageData.of(run), console);
        trace(run, console);
    }

    public void page(PageData page, Console console) throws IOException {
        report.write(writer -> ReportPage.write(page, Version.number(), writer));
        tell(options.report, "the report", console);
    }

    public void trace(ShownRun run, Console console) throws IOException {
        trace(run.call(), run.flopsPerRow(), run.subtitle(), console);
    }

    /**
     * @param subtitle what the call was
     */
    public void trace(CallSpans call, double flopsPerRow, String subtitle, Console console)
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
