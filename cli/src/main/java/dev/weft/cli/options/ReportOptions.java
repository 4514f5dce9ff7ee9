package dev.weft.cli.options;

import picocli.CommandLine.Option;

/** Reports and traces of a call, for every command that makes one. */
public final class ReportOptions {

    @Option(
            names = "--report",
            paramLabel = "FILE.html",
            description =
                    "Write the report there: one page with timeline, views, links and what to try"
                            + " next; it needs no network.")
    public String report;

    @Option(
            names = "--trace",
            paramLabel = "FILE.json",
            description = "Write the timeline there for Perfetto or chrome://tracing.")
    public String trace;

    public boolean wanted() {
        return report != null || trace != null;
    }

    /** The option that asks for one, with its value. */
    public String given() {
        return report == null ? "--trace " + trace : "--report " + report;
    }
}
