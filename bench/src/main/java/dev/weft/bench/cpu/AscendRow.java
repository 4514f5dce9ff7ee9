package dev.weft.bench.cpu;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.search.PlanSearch;
import dev.weft.search.Problem;
import dev.weft.sim.Machine;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.List;

/**
 * A row of the table that the Ascend example publishes: fp16 to fp32, means of ten calls after five
 * on an Ascend A3 (910B1).
 *
 * @param publishedMs the mean of a call
 * @param publishedTflops the rate beside it, from the time before it was rounded
 */
record AscendRow(int ranks, long m, long k, long n, double publishedMs, double publishedTflops) {

    static final List<AscendRow> ROWS =
            List.of(
                    new AscendRow(2, 2048, 2048, 1024, 0.297, 28.96),
                    new AscendRow(2, 4096, 4096, 2048, 1.098, 62.57),
                    new AscendRow(2, 4096, 4096, 4096, 1.231, 111.62),
                    new AscendRow(2, 8192, 4096, 4096, 2.519, 109.13),
                    new AscendRow(4, 4096, 4096, 4096, 0.986, 139.42),
                    new AscendRow(4, 8192, 4096, 4096, 1.648, 166.75),
                    new AscendRow(8, 8192, 4096, 4096, 1.439, 191.03),
                    new AscendRow(8, 16384, 4096, 4096, 2.585, 212.71));

    /** Of one rank's product. */
    double flops() {
        return 2.0 * m * k * n;
    }

    String describe() {
        return "%d ranks, %d x %d x %d".formatted(ranks, m, k, n);
    }

    /** What a call takes on a model of the machine, as its own kernel does it. */
    double predictedMs(Machine machine) {
        Problem problem = Problem.of(Shards.even(m, ranks), k, n, DType.FP16, DType.FP32);
        PlanSearch search = new PlanSearch(machine, problem);
        return search.price(search.candidate(Algorithm.MESH_PUSH), View.PIPELINED).ns() / 1e6;
    }
}
