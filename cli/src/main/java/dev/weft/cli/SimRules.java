package dev.weft.cli;

import dev.weft.ffi.MpiEnvironment;
import dev.weft.sim.Machine;
import dev.weft.sim.Machines;
import dev.weft.sim.TileEngine;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.ParseResult;

/** What a simulated run refuses, before anything is priced or written. */
final class SimRules {

    /** Options that say how real ranks are started or multiply. */
    private static final List<String> OF_REAL_RANKS =
            List.of(
                    "--launcher",
                    "--hostfile",
                    "--mpi-args",
                    "--peers",
                    "--engine",
                    "--watch",
                    "--npy");

    private SimRules() {}

    static void check(RunOptions options, ParseResult given) {
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
        if (options.fromFiles() && !options.verify) {
            throw new UsageException(
                    "--a "
                            + options.a
                            + " with --run-mode sim: expected --verify, since prices need no"
                            + " numbers");
        }
        if (options.problem.groups != 1) {
            throw new UsageException(
                    "--groups "
                            + options.problem.groups
                            + " with --run-mode sim: expected 1, since one group is simulated");
        }
    }

    /** What needs --run-mode sim, in a real run. */
    static void checkReal(RunOptions options) {
        if (!options.slow.isEmpty()) {
            throw new UsageException(
                    "--slow "
                            + options.slow
                            + " slows simulated ranks: it needs --run-mode sim, not "
                            + options.execution.runMode);
        }
    }

    static Machine machine(String nameOrPath) {
        try {
            return Machines.of(nameOrPath);
        } catch (IllegalArgumentException e) {
            throw new UsageException("--soc-version: " + e.getMessage());
        }
    }

    /** All units of such an engine multiply: nobody chooses how many. */
    static void checkWorkers(Machine machine, int computeWorkers) {
        if (machine.engine() instanceof TileEngine tiles
                && computeWorkers > 0
                && computeWorkers != tiles.units()) {
            throw new UsageException(
                    "--compute-blocks "
                            + computeWorkers
                            + ": expected none or "
                            + tiles.units()
                            + ", since all units of "
                            + machine.name()
                            + " multiply");
        }
    }

    /** Before anything is printed; a scenario would refuse the same, later. */
    static void checkSlow(Map<Integer, Double> slow, int ranks) {
        slow.forEach(
                (rank, factor) -> {
                    if (rank < 0 || rank >= ranks || !(factor > 0 && Double.isFinite(factor))) {
                        throw new UsageException(
                                "--slow: rank "
                                        + rank
                                        + " "
                                        + factor
                                        + " times as slow: expected one of "
                                        + ranks
                                        + " ranks and a positive factor");
                    }
                });
    }
}
