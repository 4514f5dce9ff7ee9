package dev.weft.sim;

import dev.weft.plan.step.Step;
import dev.weft.sim.SpanSink.Activity;
import dev.weft.sim.Tasks.AddTask;
import dev.weft.sim.Tasks.ProductTask;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.List;

/** Multiplies and adds on one simulated rank, as signals come. */
abstract class ProductRun {

    final Simulation simulation;
    final int rank;
    final List<Program> programs = new ArrayList<>();

    /** The factor by which the rank is slower than the machine. */
    final double slowness;

    /** The time of all products, one after the other. */
    double totalNs;

    /** When the last product was done. */
    double lastNs;

    /** The longest chain of steps that ends in one of the products. */
    double pathNs;

    /** The steps of a plan's worker: products in their order, and additions. */
    record Program(List<ProductTask> products, List<AddTask> adds) {}

    ProductRun(Simulation simulation, Tasks tasks, int rank, List<List<Step>> steps) {
        this.simulation = simulation;
        this.rank = rank;
        this.slowness = simulation.wires.slowness(rank);
        steps.forEach(each -> programs.add(program(tasks, each)));
    }

    private Program program(Tasks tasks, List<Step> steps) {
        List<ProductTask> products = new ArrayList<>();
        List<AddTask> adds = new ArrayList<>();
        for (int i = 0; i < steps.size(); i++) {
            if (steps.get(i) instanceof Step.Multiply) {
                products.add(tasks.product(steps, i));
                i += products.getLast().parts().size() - 1;
            } else if (steps.get(i) instanceof Step.Add add
                    && simulation.view != View.COMPUTE_ONLY) {
                adds.add(tasks.add(add));
            }
        }
        simulation.expect(products.size() + adds.size());
        return new Program(products, adds);
    }

    /** The name of a worker's track, as in executors. */
    String track(int worker, int program) {
        return "compute-" + worker + (programs.size() > 1 ? " of program-" + program : "");
    }

    abstract void start();

    /** The least time in which this rank can do its products, considering only its engine. */
    abstract double leastNs();

    /** Notes that all of a product is done now. */
    void multiplied(ProductTask product, double earliestNs) {
        simulation.done(null, 0, 0);
        for (Tasks.Raise raise : product.raises()) {
            raise.word().raise(raise.value(), simulation.events.now(), earliestNs);
        }
    }

    /** Notes that an addition is done now. */
    void added(AddTask add, double earliestNs) {
        double now = simulation.events.now();
        simulation.busyUntil(now);
        simulation.done(add.raise(), now, earliestNs);
    }

    /** Reports a wait for {@code peer}, or a product, if spans are wanted. */
    void report(
            Activity kind,
            String track,
            int peer,
            long firstRow,
            long rows,
            double from,
            double to) {
        if (simulation.view != View.COMM_ONLY && !simulation.scenario.columns().isEmpty()) {
            simulation.sink.span(
                    rank, track, new SpanSink.Span(kind, peer, -1, firstRow, rows, 0, 0, from, to));
        }
    }
}
