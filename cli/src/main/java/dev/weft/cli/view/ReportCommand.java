package dev.weft.cli.view;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.data.CommandFiles;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.options.ReportOptions;
import dev.weft.report.CallsRecord;
import dev.weft.report.Comparison;
import dev.weft.report.PageData;
import dev.weft.report.RecordReader;
import dev.weft.report.RunView;
import dev.weft.report.ShownRun;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code weft report}: pages and traces from records. */
@Command(
        name = "report",
        description =
                "Makes a page from a run record: timeline, views, links and what to try"
                        + " next. Several run records give a comparison, a sweep record its curves,"
                        + " and the calls that a program's ranks have logged one timeline of them"
                        + " all.",
        footer = {
            "",
            "Examples:",
            "  ./weft report run.json                       writes run.html next to it",
            "  ./weft report a.json b.json --report ab.html (without it: comparison.html)",
            "  ./weft report run.json --trace trace.json    for Perfetto",
            "  ./weft report layer-*.json --report layer.html   calls that CallLog wrote",
            "  ./weft report --serve sweep.json             over HTTP, only on loopback",
            "  ./weft report --serve --watch run.json       shows each new version of the file",
            "",
            "Exit codes: 0 done, 1 failed, 2 wrong usage or no such record."
        })
public final class ReportCommand extends WeftCommand {

    private static final String JSON = ".json";

    @Parameters(
            arity = "1..*",
            paramLabel = "RECORD",
            description =
                    "Records that --json wrote (weft.run/1, or one weft.sweep/1), or those of a"
                            + " program's ranks (weft.calls/1).")
    List<Path> records;

    @Mixin ReportOptions reports;

    @Option(
            names = "--serve",
            description = "Serve the page on loopback until the command is stopped.")
    boolean serve;

    @Option(
            names = "--watch",
            description = "With --serve: wait for the records, and show each new version of them.")
    boolean watch;

    @Option(
            names = "--port",
            paramLabel = "PORT",
            description = "With --serve: the port, 0 for any (default: ${DEFAULT-VALUE}).")
    int port = 0;

    @Option(names = "--quiet", description = "Print only errors.")
    boolean quiet;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (!serve && (watch || port != 0)) {
            throw new UsageException(
                    (watch ? "--watch" : "--port " + port) + ": expected --serve with it");
        }
        if (watch && reports.wanted()) {
            throw new UsageException(reports.given() + " with --watch: expected one of them");
        }
        OptionValues.between("--port", port, 0, 65_535);
        if (!serve && !reports.wanted()) {
            reports.report = besideTheRecord();
        }
        ReportFiles files = new ReportFiles(reports);
        CommandFiles all = new CommandFiles().writes(reports);
        records.forEach(file -> all.reads("the record", file.toString()));
        all.check();
        Console console = console(quiet);
        Supplier<PageServer.Edition> editions;
        if (watch) {
            editions = new RecordWatch(records)::edition;
        } else {
            PageData page = page(records);
            editions = () -> new PageServer.Edition(0, () -> page);
            ShownRun traced = reports.trace == null ? null : onlyRun(page);
            if (reports.report != null) {
                files.page(page, console);
            }
            if (traced != null) {
                files.trace(traced, console);
            }
            if (!serve) {
                tell(page, console);
            }
        }
        return serve ? serve(editions) : 0;
    }

    /** Prints what the page says first: the result of each run, and which one was the fastest. */
    private static void tell(PageData page, Console console) {
        page.runs().stream().map(ShownRun::line).filter(Objects::nonNull).forEach(console::print);
        Comparison comparison = page.comparison();
        if (comparison != null) {
            console.print(comparison.sentence());
            comparison.warnings().forEach(warning -> console.print("Warning: " + warning));
        }
    }

    private String besideTheRecord() {
        if (records.size() > 1) {
            return read(records.getFirst()).calls() == null ? "comparison.html" : "calls.html";
        }
        String name = records.getFirst().toString();
        return (name.endsWith(JSON) ? name.substring(0, name.length() - JSON.length()) : name)
                + ".html";
    }

    private ShownRun onlyRun(PageData page) {
        if (page.runs().size() != 1) {
            throw new UsageException("--trace " + reports.trace + ": expected one run record");
        }
        return page.runs().getFirst();
    }

    static PageData page(List<Path> records) {
        List<ShownRun> runs = new ArrayList<>();
        List<CallsRecord> calls = new ArrayList<>();
        PageData sweep = null;
        for (Path file : records) {
            RecordReader.Read read = read(file);
            if (read.run() != null) {
                runs.add(RunView.of(read.run(), file.getFileName().toString()));
            } else if (read.calls() != null) {
                calls.add(read.calls());
            } else {
                sweep = PageData.sweep("Sweep on " + read.machine(), read.sweep());
            }
        }
        if (runs.size() < records.size()
                && calls.size() < records.size()
                && (sweep == null || records.size() > 1)) {
            throw new UsageException(
                    "%s records, not all of them runs: expected only run records, the calls of all"
                            + " ranks, or one sweep",
                    records.size());
        }
        if (sweep != null) {
            return sweep;
        }
        if (!calls.isEmpty()) {
            List<String> names =
                    records.stream().map(file -> file.getFileName().toString()).toList();
            return PageData.of(UsageException.checked("", () -> CallsRecord.shown(calls, names)));
        }
        return runs.size() == 1 ? PageData.of(runs.getFirst()) : PageData.comparison(runs);
    }

    private static RecordReader.Read read(Path file) {
        if (!Files.isRegularFile(file)) {
            throw new UsageException(file + ": no such record");
        }
        try {
            return RecordReader.read(file);
        } catch (IllegalArgumentException e) {
            throw new UsageException(e.getMessage());
        } catch (IOException e) {
            throw new UsageException(file + ": cannot be read: " + e.getMessage());
        }
    }

    private int serve(Supplier<PageServer.Edition> editions) throws InterruptedException {
        try (PageServer server = new PageServer(port, editions)) {
            out().println(server.address());
            if (out().checkError()) {
                // Nobody knows the address; the reason is printed at the end.
                return 0;
            }
            // Until a signal ends the process.
            new CountDownLatch(1).await();
        }
        return 0;
    }
}
