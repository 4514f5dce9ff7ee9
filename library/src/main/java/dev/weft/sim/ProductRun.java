package dev.weft.sim;

import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.sim.SpanSink.Kind;
import java.util.List;

/** Multiplies on one simulated rank as chunks arrive. */
abstract class ProductRun {

    final Simulation simulation;
    final SimulatedRank rank;
    private final List<RowBlock> order;

    /** Whether nothing is multiplied before everything has arrived. */
    final boolean gatherFirst;

    /** The factor by which the rank is slower than the machine. */
    final double slowness;

    /** Null if nothing is summed over ranks. */
    final SumSteps sums;

    /** The time of all products, one after the other. */
    double totalNs;

    /** When the last product was done. */
    double lastNs;

    /** The longest chain of transfers that ends in one of the products. */
    double pathNs;

    ProductRun(Simulation simulation, SimulatedRank rank) {
        this.simulation = simulation;
        this.rank = rank;
        this.order = rank.plan.consumption();
        this.sums = simulation.scenario.sums() == null ? null : new SumSteps(simulation, rank);
        this.gatherFirst =
                sums == null
                        && rank.plan.pacing().gatherFirst()
                        && simulation.view == SimulatedView.PIPELINED;
        this.slowness = simulation.wires.slowness(rank.plan.rank());
    }

    /** The blocks of one program, in their order. */
    List<RowBlock> ordered(int program) {
        return order.stream().filter(block -> block.program() == program).toList();
    }

    /** The name of a worker's track, as in executors. */
    String track(int worker, int program) {
        return "compute-" + worker + (rank.plan.programs() > 1 ? " of program-" + program : "");
    }

    abstract void start();

    /** A chunk has arrived at this rank, or another event has happened. */
    abstract void arrived();

    /** The least time in which this rank can do its products, considering only its engine. */
    abstract double leastNs();

    /** The number of one of a block's chunks. */
    int tag(RowBlock block, int index) {
        return rank.plan.chunks().tag(block.source(), block.firstChunk() + index);
    }

    /** Reports a wait for {@code peer}, or a product; rows are those of {@code source}. */
    void tell(
            Kind kind,
            String track,
            int source,
            int peer,
            long firstRow,
            long rows,
            double from,
            double to) {
        if (simulation.sink != null) {
            SpanSink.Span span =
                    new SpanSink.Span(kind, source, peer, -1, -1, firstRow, rows, 0, from, to);
            simulation.sink.span(rank.plan.rank(), track, span);
        }
    }
}
