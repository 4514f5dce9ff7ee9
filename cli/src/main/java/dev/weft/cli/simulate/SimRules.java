package dev.weft.cli.simulate;

import dev.weft.cli.console.UsageException;
import dev.weft.sim.Machine;
import dev.weft.sim.Machines;
import dev.weft.sim.TileEngine;
import java.util.Map;

/** What a machine model refuses, before anything is priced or written. */
public final class SimRules {

    private SimRules() {}

    public static Machine machine(String nameOrPath) {
        try {
            return Machines.of(nameOrPath);
        } catch (IllegalArgumentException e) {
            throw new UsageException("--soc-version: " + e.getMessage());
        }
    }

    /** All units of such an engine multiply: nobody chooses how many. */
    public static void checkWorkers(Machine machine, int computeWorkers) {
        if (machine.engine() instanceof TileEngine tiles
                && computeWorkers > 0
                && computeWorkers != tiles.units()) {
            throw new UsageException(
                    "--compute-blocks %s: expected none or %s, since all units of %s multiply"
                            .formatted(computeWorkers, tiles.units(), machine.name()));
        }
    }

    /** Before anything is printed; a scenario would refuse the same, later. */
    public static void checkSlow(Map<Integer, Double> slow, int ranks) {
        slow.forEach(
                (rank, factor) -> {
                    if (rank < 0 || rank >= ranks || !(factor > 0 && Double.isFinite(factor))) {
                        throw new UsageException(
                                ("--slow: rank %s %s times as slow: expected one of %s ranks and a positive"
                                                + " factor")
                                        .formatted(rank, factor, ranks));
                    }
                });
    }
}
