package dev.weft.cli.simulate;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.TextTarget;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.data.CommandFiles;
import dev.weft.cli.options.ExpertsOption;
import dev.weft.cli.options.LowerCase;
import dev.weft.cli.options.NumberList;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.options.ProblemOptions;
import dev.weft.cli.options.RhsOption;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.step.StepPlan;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.search.Problem;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.Machine;
import dev.weft.sim.Wiring;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft plan}: the best way to solve a problem on a machine model, and what limits it. */
@Command(
        name = "plan",
        description =
                "Says which algorithm, chunks and number of ranks are fastest for a problem on a"
                        + " model of a machine, where overlap stops paying, and what faster links,"
                        + " more on-chip memory or a faster engine would gain. Nothing is"
                        + " multiplied.",
        footer = {
            "",
            "Examples:",
            "  ./weft plan -v h200-nvlink8 --gm 16384 --gk 8192 --gn 28672",
            "  ./weft plan -v Ascend910B1 --gm 16384 --gk 4096 --gn 4096 -n 8 --rhs replicated",
            "  ./weft plan -v h200-nvlink8 -n 4 --dump --algorithm ring",
            "  ./weft plan -v h200-nvlink8 --op matmul-reduce-scatter --gm 4096 --gk 16384",
            "  ./weft plan -v h200-nvlink8 -n 8 --gm 8192 --gk 2048 --gn 2816 --experts 64"
                    + " --experts-per-row 6 --routing zipf:0.5",
            "  ./weft plan -v my-machine.json --gm 4096 --gk 4096 --gn 4096 --json -"
        })
public final class PlanCommand extends WeftCommand {

    /** Without -n, no more ranks than these are tried. */
    private static final int MOST_TRIED_RANKS = 64;

    @Mixin SimOptions common;

    @Option(
            names = "--gm",
            paramLabel = "M",
            defaultValue = "2048",
            description = "Rows of A (default: ${DEFAULT-VALUE}).")
    long m;

    @Option(
            names = "--gk",
            paramLabel = "K",
            defaultValue = "2048",
            description = "Columns of A and rows of B (default: ${DEFAULT-VALUE}).")
    long k;

    @Option(
            names = "--gn",
            paramLabel = "N",
            defaultValue = "1024",
            description = "Columns of B (default: ${DEFAULT-VALUE}).")
    long n;

    @Option(
            names = {"-n", "--ranks", "--n-ranks"},
            paramLabel = "LIST",
            description =
                    "Numbers of ranks to choose from, such as 8, 4,6 or 2..64 (default: 2, 4, 8 and"
                            + " so on up to a node of the machine, or 64).")
    String ranks;

    @Mixin RhsOption rhs;

    @Mixin ExpertsOption experts;

    @Option(
            names = "--order",
            converter = LowerCase.class,
            paramLabel = "ORDER",
            description =
                    "If products are summed: whole, by-rank or by-rank-bf16 (default: whole).")
    String order;

    @Option(
            names = "--dump",
            description =
                    "Print what every rank does in the fastest plan, or in the plan of"
                            + " --algorithm: transfers by lane, and the order of the products. With"
                            + " --json they are in the record too.")
    boolean dump;

    @Option(
            names = "--algorithm",
            paramLabel = "NAME",
            description = "The algorithm to dump, which may be your own (see docs/algorithms.md).")
    String algorithm;

    @Option(
            names = "--json",
            paramLabel = "FILE",
            description =
                    "Write the record (schema weft.plan/1) to this file; - is standard output.")
    String json;

    @Override
    public Integer call() throws IOException {
        PrintWriter out = out();
        TextTarget target = TextTarget.json(json, out);
        new CommandFiles().readsMachine(common.socVersion).writes("--json", json).check();
        Machine machine = common.machine();
        boolean columnSharded = common.columnSharded(rhs, spec.commandLine().getParseResult());
        Order sums = OptionValues.order(common.checkedOp(), order, Order.WHOLE);
        if (algorithm != null && !dump) {
            throw new UsageException("--algorithm " + algorithm + ": goes with --dump");
        }
        if (algorithm != null) {
            OptionValues.writer(common.op, algorithm);
        }
        checkSize("--gm", m);
        checkSize("--gk", k);
        checkSize("--gn", n);
        boolean ofExperts = experts.isGiven();
        List<PlanSearch> searches = new ArrayList<>();
        for (int count : ranks(machine)) {
            Sweep.Shape shape = new Sweep.Shape(m, k, n, count);
            Problem gathered = shape.problem(columnSharded, common.aType(), common.outType());
            if (ofExperts) {
                Problem ofOne = shape.problem(false, common.aType(), common.outType());
                gathered = experts.of(ofOne, common.isSummed());
            }
            searches.add(SimRules.search(machine, SimRules.summed(gathered, common.op, sums)));
        }
        PlanAnswer answer = PlanAnswer.of(searches, Progress.forTerminal(common.quiet));
        PlanReport report =
                new PlanReport(
                        common.socVersion,
                        m,
                        k,
                        n,
                        columnSharded,
                        answer,
                        dump ? plans(answer.best()) : null,
                        ofExperts ? experts.describe(answer.best().ranks()) : null);
        report.print(new Console(out, common.quiet || target.toStandardOutput()));
        target.writeJson(report::writeJson);
        return 0;
    }

    private PlanReport.Dump plans(PlanAnswer.Choice best) {
        PlanSearch search = best.search();
        if (algorithm == null) {
            return plans(search, best.cheapest());
        }
        try {
            return plans(search, search.candidate(OptionValues.writer(common.op, algorithm)));
        } catch (IllegalArgumentException e) {
            String unnamed = e.getMessage().replaceFirst("^algorithm '[^']*': ", "");
            throw new UsageException("--algorithm %s: %s", algorithm, unnamed);
        }
    }

    private static PlanReport.Dump plans(PlanSearch search, Candidate candidate) {
        List<StepPlan> plans = search.steps(candidate);
        String name = candidate.algorithm().label();
        List<String> lines = new ArrayList<>();
        lines.add(name + ": " + search.chunks(candidate));
        lines.addAll(StepPlan.describe(plans));
        return new PlanReport.Dump(lines, PlanJson.of(name, plans));
    }

    private static void checkSize(String option, long size) {
        OptionValues.between(option, size, 1, ProblemOptions.MOST_SIZE);
    }

    private List<Integer> ranks(Machine machine) {
        if (ranks != null) {
            return NumberList.parseInts("--n-ranks", ranks, 1, OptionValues.MOST_RANKS);
        }
        if (machine.node().topology() == Wiring.Topology.TORUS) {
            return List.of(machine.ranksPerNode());
        }
        int most = mostRanks(machine);
        List<Integer> counts = new ArrayList<>();
        for (int count = 2; count < most; count *= 2) {
            counts.add(count);
        }
        counts.add(most);
        return counts;
    }

    /**
     * The ranks of a node if it has several; otherwise one per core, or as many as are worth
     * trying.
     */
    private static int mostRanks(Machine machine) {
        if (machine.ranksPerNode() > 1) {
            return Math.min(machine.ranksPerNode(), MOST_TRIED_RANKS);
        }
        if (machine.network() == null && machine.engine() instanceof CoreEngine cores) {
            return Math.clamp(cores.cores(), 2, MOST_TRIED_RANKS);
        }
        return machine.network() == null && machine.ranksPerNode() == 1 ? 1 : MOST_TRIED_RANKS;
    }
}
