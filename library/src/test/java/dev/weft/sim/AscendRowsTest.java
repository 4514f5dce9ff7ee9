package dev.weft.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.AscendChunkRule;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;

/**
 * The times that the Ascend example publishes for the 910B1. Three parameters of its model are
 * fitted to four of them, the other four are held out.
 */
class AscendRowsTest {

    private static final double FITTED_WITHIN = 0.08;
    private static final double HELD_OUT_WITHIN = 0.15;

    /** Lanes of the example: its transfer blocks. */
    private static final int COMM_BLOCKS = 24;

    private record Row(int ranks, long m, long k, long n, double ms, boolean fitted) {

        /** As the example's kernel has it: fp16 in, fp32 out, its chunk rule, a put for each. */
        TestCall scenario(Machine machine) {
            Shards shards = Shards.even(m, ranks);
            AscendChunkRule rule = AscendChunkRule.of(shards.maxRows(), k, 128, 256);
            Chunks chunks =
                    Chunks.byRows(shards, k, rule.rows(), machine.engine().blockRows())
                            .withChunkCols(rule.cols());
            return new TestCall(
                    Algorithm.MESH_PUSH,
                    chunks,
                    COMM_BLOCKS,
                    machine.hosts(ranks),
                    DType.FP16,
                    DType.FP32,
                    List.of(n),
                    false,
                    0,
                    Map.of());
        }

        double predictedMs(Machine machine) {
            return Simulator.run(machine, scenario(machine).on(machine), View.PIPELINED).ns() / 1e6;
        }

        double error(Machine machine) {
            return predictedMs(machine) / ms - 1;
        }
    }

    private static final List<Row> ROWS =
            List.of(
                    new Row(2, 2048, 2048, 1024, 0.297, true),
                    new Row(2, 4096, 4096, 2048, 1.098, false),
                    new Row(2, 4096, 4096, 4096, 1.231, false),
                    new Row(2, 8192, 4096, 4096, 2.519, true),
                    new Row(4, 4096, 4096, 4096, 0.986, true),
                    new Row(4, 8192, 4096, 4096, 1.648, false),
                    new Row(8, 8192, 4096, 4096, 1.439, false),
                    new Row(8, 16384, 4096, 4096, 2.585, true));

    @Test
    void predictsThePublishedTimes() {
        Machine machine = Machines.named("Ascend910B1");
        StringBuilder table = new StringBuilder("ranks     M     K     N  published  predicted\n");
        for (Row row : ROWS) {
            table.append(
                    String.format(
                            Locale.ROOT,
                            "%5d %5d %5d %5d %7.3f ms %7.3f ms %+5.1f%% %s%n",
                            row.ranks(),
                            row.m(),
                            row.k(),
                            row.n(),
                            row.ms(),
                            row.predictedMs(machine),
                            100 * row.error(machine),
                            row.fitted() ? "fitted" : "held out"));
        }
        System.out.print(table);
        assertEquals(4, ROWS.stream().filter(Row::fitted).count());
        for (Row row : ROWS) {
            double within = row.fitted() ? FITTED_WITHIN : HELD_OUT_WITHIN;
            assertTrue(Math.abs(row.error(machine)) <= within, row + "\n" + table);
        }
    }

    @Test
    void theParametersAreTheBestThereAreOrNearly() {
        Machine shipped = Machines.named("Ascend910B1");
        double best = Double.MAX_VALUE;
        for (double tflops = 200; tflops <= 360; tflops += 20) {
            for (double gbps = 12; gbps <= 20; gbps += 1) {
                for (double callUs = 0; callUs <= 60; callUs += 10) {
                    best = Math.min(best, worstFitted(with(shipped, tflops, gbps, callUs)));
                }
            }
        }
        double worst = worstFitted(shipped);
        assertTrue(worst <= best + 0.02, worst + " with the shipped ones, " + best + " at best");
    }

    private static double worstFitted(Machine machine) {
        return ROWS.stream()
                .filter(Row::fitted)
                .mapToDouble(row -> Math.abs(row.error(machine)))
                .max()
                .orElseThrow();
    }

    /** The shipped model with other values of the three fitted parameters. */
    private static Machine with(Machine machine, double tflops, double gbps, double callUs) {
        TileEngine engine = (TileEngine) machine.engine();
        Machine.Overheads overheads = machine.overheads();
        Wiring node = machine.node();
        return new Machine(
                machine.name(),
                machine.description(),
                machine.sources(),
                new TileEngine(
                        engine.units(),
                        engine.tileRows(),
                        engine.tileCols(),
                        Map.of(DType.FP16, tflops * 1e3 / engine.units()),
                        engine.tileUs()),
                machine.memory(),
                new Machine.Overheads(
                        callUs, overheads.transferUs(), overheads.signalUs(), overheads.wakeUs()),
                machine.consumption(),
                machine.ranksPerNode(),
                new Wiring(
                        node.topology(),
                        node.torus(),
                        node.latencyUs(),
                        gbps,
                        node.laneGbps(),
                        node.rampBytes(),
                        node.duplex(),
                        node.portPerRank(),
                        node.coreGbps(),
                        node.direct()),
                machine.network(),
                machine.copies());
    }
}
