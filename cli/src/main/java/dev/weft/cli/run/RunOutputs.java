package dev.weft.cli.run;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.TextTarget;
import dev.weft.cli.data.UserFiles;
import dev.weft.cli.view.ReportFiles;
import dev.weft.cli.view.Summary;
import dev.weft.cli.view.TimelinePicture;
import dev.weft.report.CallSpans;
import dev.weft.report.RunRecord;
import dev.weft.report.RunRecordJson;
import dev.weft.report.RunView;
import dev.weft.report.ShownRun;
import java.io.IOException;
import java.io.PrintWriter;

/**
 * Everything that a run leaves for its user: summary, timeline, record, report and trace. Created
 * before the run, so that what cannot be written is refused before anything is measured.
 */
final class RunOutputs {

    private final RunOptions options;
    private final TextTarget json;
    private final ReportFiles files;
    private final Console console;

    RunOutputs(RunOptions options, PrintWriter out) {
        this.options = options;
        options.files().check().checkOutputs(options.problem.dataDir);
        if (options.c != null) {
            TextTarget.file("--c", UserFiles.pathToWrite("--c", options.c).toString());
        }
        this.json = TextTarget.json(options.json, out);
        this.files = new ReportFiles(options.reports);
        this.console = new Console(out, options.quiet || json.toStandardOutput());
    }

    Console console() {
        return console;
    }

    /** Whether anything besides the summary needs the spans of every rank. */
    boolean wantsSpans() {
        return options.json != null || options.reports.wanted();
    }

    void write(RunRecord unlabelled) throws IOException {
        RunRecord record = unlabelled.labelled(options.label);
        new Summary(console).print(record);
        String call = record.simulated() ? "one call" : "the pipelined call nearest to the median";
        TimelinePicture.draw(console, call, CallSpans.of(record), options.ascii);
        new Summary(console).conclusion(record);
        json.writeJson(generator -> RunRecordJson.write(record, generator));
        if (options.reports.wanted()) {
            files.write(shown(record), console);
        }
    }

    static ShownRun shown(RunRecord record) {
        RunRecord.Problem problem = record.problem();
        return RunView.of(
                record,
                text(
                        "%d x %d x %d, %s, on %d ranks",
                        problem.m(), problem.k(), problem.n(), problem.aDtype(), problem.ranks()));
    }
}
