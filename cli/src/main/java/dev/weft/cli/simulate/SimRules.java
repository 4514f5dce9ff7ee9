package dev.weft.cli.simulate;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.RhsOption;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;
import dev.weft.search.PlanSearch;
import dev.weft.search.Problem;
import dev.weft.search.Sums;
import dev.weft.sim.Machine;
import dev.weft.sim.Machines;
import dev.weft.tensor.DType;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import picocli.CommandLine.ParseResult;

/** What a machine model refuses, before anything is priced or written. */
public final class SimRules {

    /** Options that say how real ranks are started or multiply. */
    private static final List<String> OF_REAL_RANKS =
            List.of(
                    "--launcher",
                    "--hostfile",
                    "--mpi-args",
                    "--peers",
                    "--engine",
                    "--watch",
                    "--npy",
                    "--c",
                    "--block-sizes",
                    "--num-warps",
                    "--num-stages");

    private SimRules() {}

    /** Refuses to continue without a machine, and lists the available ones. */
    public static void requireMachine(String what, String machine) {
        if (machine == null) {
            throw new UsageException(
                    "%s needs -v: expected one of %s, here, or a model's .json",
                    what, String.join(", ", Machines.names()));
        }
    }

    /** Refuses what a simulation lacks or cannot use. */
    public static void checkSimulated(String machine, ParseResult given) {
        requireMachine("--run-mode sim", machine);
        if (MpiEnvironment.current().launched()) {
            throw new UsageException(
                    "--run-mode sim simulates all ranks in one process: start it without mpirun");
        }
        for (String option : OF_REAL_RANKS) {
            if (given.hasMatchedOption(option)) {
                throw new UsageException(
                        option + " is for real ranks: --run-mode sim simulates them, give none");
            }
        }
    }

    public static Machine machine(String nameOrPath) {
        return UsageException.checked("--soc-version: ", () -> Machines.of(nameOrPath));
    }

    /** Like {@link #machine(String)}; {@code lnc} says if a rank of trn2 has one core or two. */
    public static Machine machine(String nameOrPath, int lnc) {
        return UsageException.checked("--soc-version: ", () -> Machines.of(nameOrPath, lnc));
    }

    /** The problem, summed over its ranks, which have even parts of K, if {@code op} says so. */
    static Problem summed(Problem problem, String op, Order order) {
        if (op.equals(ProblemSpec.GATHER)) {
            return problem;
        }
        Shards kParts = Shards.even(problem.k(), problem.shards().ranks());
        return problem.summed(new Sums(kParts, op.equals(ProblemSpec.ALL), order));
    }

    /** What the ranks have of B, in the words of records. */
    static String rhs(boolean summed, boolean columnSharded) {
        return summed ? "row-sharded" : RhsOption.label(columnSharded);
    }

    /** The search for a plan, if the problem is possible and the machine has its rates. */
    public static PlanSearch search(Machine machine, Problem problem) {
        return checked(new PlanSearch(machine, problem));
    }

    /** The search, if its problem is possible and its machine has the rates. */
    public static PlanSearch checked(PlanSearch search) {
        Machine machine = search.machine();
        Problem problem = search.problem();
        long m = problem.shards().totalRows();
        int ranks = problem.shards().ranks();
        DType aType = problem.aType();
        ProblemSpec.checkBytes("A", aType, m, problem.k(), ranks);
        for (long n : problem.columns()) {
            ProblemSpec.checkBytes("B", aType, problem.k(), n, ranks);
            ProblemSpec.checkBytes("C", problem.outType(), m, n, ranks);
        }
        if (!machine.engine().knows(aType)) {
            String known =
                    Arrays.stream(DType.values())
                            .filter(machine.engine()::knows)
                            .map(DType::label)
                            .collect(Collectors.joining(", "));
            throw new UsageException(
                    "A is %s: expected one of %s, for which %s has rates",
                    aType.label(), known, machine.name());
        }
        return search;
    }

    /** Before anything is printed; a scenario would refuse the same, later. */
    public static void checkSlow(Map<Integer, Double> slow, int ranks) {
        slow.forEach(
                (rank, factor) -> {
                    if (rank < 0 || rank >= ranks || !(factor > 0 && Double.isFinite(factor))) {
                        throw new UsageException(
                                "--slow: rank %s %s times as slow: expected one of %s ranks and a positive"
                                        + " factor",
                                rank, factor, ranks);
                    }
                });
    }
}
