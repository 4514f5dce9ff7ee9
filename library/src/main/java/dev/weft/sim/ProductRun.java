package dev.weft.sim;

import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.sim.SpanSink.Kind;
import java.util.List;

/** Multiplies on one simulated rank as chunks arrive. */
abstract class ProductRun {

    final Simulation simulation;
    final SimulatedRank rank;
    private final List<RowBlock> order;

    /** Whether nothing is multiplied before everything has come. */
    final boolean gatherFirst;

    /** How many times as long as the machine the rank takes. */
    final double slowness;

    /** All products, one after the other. */
    double totalNs;

    /** The longest chain of transfers that ends in one of the products. */
    double pathNs;

    ProductRun(Simulation simulation, SimulatedRank rank) {
        this.simulation = simulation;
        this.rank = rank;
        this.order = rank.plan.consumption();
        this.gatherFirst =
                rank.plan.pacing().gatherFirst() && simulation.view == SimulatedView.PIPELINED;
        this.slowness = simulation.wires.slowness(rank.plan.rank());
    }

    /** The blocks of one program, in their order. */
    List<RowBlock> ordered(int program) {
        return order.stream().filter(block -> block.program() == program).toList();
    }

    /** The name of a worker's track, as executors have it. */
    String track(int worker, int program) {
        return "compute-" + worker + (rank.plan.programs() > 1 ? " of program-" + program : "");
    }

    abstract void start();

    /** A chunk has come to this rank. */
    abstract void arrived();

    /** The least time in which this rank can do its products, by its engine alone. */
    abstract double leastNs();

    /** The number of one of a block's chunks. */
    int tag(RowBlock block, int index) {
        return rank.plan.chunks().tag(block.source(), block.firstChunk() + index);
    }

    /** Tells of a wait for rows of {@code source}, or of their product. */
    void tell(
            Kind kind, String track, int source, long firstRow, long rows, double from, double to) {
        if (simulation.sink != null) {
            int self = rank.plan.rank();
            int peer = kind == Kind.WAIT ? source : self;
            SpanSink.Span span =
                    new SpanSink.Span(kind, source, peer, -1, -1, firstRow, rows, 0, from, to);
            simulation.sink.span(self, track, span);
        }
    }
}
