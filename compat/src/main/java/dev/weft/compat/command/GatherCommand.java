package dev.weft.compat.command;

import static dev.weft.compat.Sb2sbLayout.ROWS;
import static dev.weft.compat.Sb2sbLayout.TILED;
import static dev.weft.compat.Sb2sbLayout.UNTILED;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.AlgorithmOption;
import dev.weft.cli.options.DtypeOption;
import dev.weft.cli.options.GroupsOption;
import dev.weft.cli.simulate.PredictedViews;
import dev.weft.compat.Sb2sbConfig;
import dev.weft.plan.Algorithm;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.cut.Cut;
import dev.weft.report.RunRecord;
import dev.weft.report.Samples;
import dev.weft.report.Views;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.search.PlanSearch.Budget;
import dev.weft.sim.Prediction;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.ConcurrentHashMap;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft gather}: the SBUF-to-SBUF gathers, verified byte for byte and measured. */
@Command(
        name = "gather",
        description =
                "Gathers [H, W] of each rank along the last dimension to [H, W x ranks],"
                        + " compares every byte on every rank, and prints the rate, and that of a"
                        + " plain copy of the same bytes by the same number of threads.",
        footer = {
            "",
            "GB/s are the bytes that a rank gets from its peers by the median time from the first",
            "rank's start to the last one's end.",
            "",
            "Examples:",
            "  ./weft gather -n 8",
            "  ./weft gather --tiled -n 8 --m 512 --k 1024 --lnc 2 --dtype fp16",
            "  ./weft gather --rows -n 4 --m 1000 --k 768 --algorithm ring --json gather.json",
            "  ./weft gather -n 8 --replica-groups 0,2,4,6/1,3,5,7",
            "  ./weft gather -n 8 --launcher processes --report gather.html",
            "  ./weft gather -r cuda -n 4",
            "  ./weft gather -r sim -v trn2 -n 16",
            "  ./weft launch -n 4 -- ./weft gather --launcher joined",
            "",
            "Exit codes: 0 exact, 1 failed, 2 wrong usage."
        })
public final class GatherCommand extends SourceCommand<GatherRun> {

    @Option(
            names = "--tiled",
            description = "In tiles of 128 rows, for more than 128 rows or several programs.")
    boolean tiled;

    @Option(names = "--rows", description = "Shard below shard instead of side by side.")
    boolean below;

    @Option(
            names = {"--h", "--m"},
            paramLabel = "ROWS",
            description = "Rows on each rank (default: 128, tiled 256).")
    Long rows;

    @Option(
            names = {"--w", "--k"},
            paramLabel = "COLS",
            description = "Columns on each rank (default: 512).")
    Long cols;

    @Mixin DtypeOption dtype = new DtypeOption(DType.BF16);

    @Option(
            names = "--lnc",
            paramLabel = "L",
            description = "Programs per rank, which share the tiles; with --tiled (default: 1).")
    Integer lnc;

    @Mixin DegreeOption degree;

    @Mixin GroupsOption groups;

    @Mixin AlgorithmOption algorithm;

    @Option(
            names = "--on-chip-bytes",
            paramLabel = "BYTES",
            description = "Capacity that an untiled input must fit (default: 24 MiB).")
    long onChipBytes = Sb2sbConfig.DEFAULT.onChipBytes();

    /** What groups must end with, by first rank and seed. */
    final Map<String, Matrix> wholes = new ConcurrentHashMap<>();

    public GatherCommand() {
        super("weft.gather/1", 8, 5, 20);
    }

    @Override
    GatherWriter algorithm(List<Integer> group) {
        return algorithm.writer();
    }

    @Override
    OptionalInt ranksOtherwise() {
        return degree.ranks(groups);
    }

    @Override
    GatherRun run(int count, Arena arena) {
        if (tiled && below) {
            throw new UsageException("--tiled and --rows: expected at most one of them");
        }
        if (lnc != null && (!tiled || lnc < 1)) {
            throw new UsageException("--lnc " + lnc + ": expected 1 or more, with --tiled");
        }
        return new GatherRun(
                this,
                tiled ? TILED : below ? ROWS : UNTILED,
                SourceOptions.size("--h/--m", rows, tiled ? 256 : 128),
                SourceOptions.size("--w/--k", cols, 512),
                dtype.type(),
                degree.check(groups.in(count)),
                lnc == null ? 1 : lnc,
                new Sb2sbConfig(algorithm.writer(), onChipBytes),
                arena);
    }

    @Override
    void tell(RunRecord record, List<SourceReport> reports) throws IOException {
        int programs = reports.isEmpty() ? run.lnc() : reports.getFirst().programs();
        GatherReport report = new GatherReport(run, record, programs);
        report.print(console);
        write(record, report::write, report::shown);
    }

    @Override
    String line(SourceReport report) {
        return "wrong bytes on rank " + report.rank();
    }

    @Override
    PlanSearch search(List<Integer> group) {
        long tileRows = run.layout().tileRows(run.m());
        return search(group, List.of(), 0, tileRows == 0 ? Cut.AUTOMATIC : new Cut(tileRows, 0, 0));
    }

    @Override
    Candidate chosen(PlanSearch search, List<Integer> group) {
        return algorithm.writer() == Algorithm.AUTO
                ? search.candidates(Budget.THOROUGH).getFirst()
                : super.chosen(search, group);
    }

    /** All of it is communication. */
    @Override
    Views predicted(PlanSearch search, Candidate chosen, Prediction call) {
        Samples none = PredictedViews.samples(0);
        Samples all = PredictedViews.samples(call.ns());
        return new Views(none, all, all, all, none, all, true, null);
    }
}
