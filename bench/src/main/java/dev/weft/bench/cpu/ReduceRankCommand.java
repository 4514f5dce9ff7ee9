package dev.weft.bench.cpu;

import dev.weft.bench.measure.MadeUpData;
import dev.weft.bench.measure.Operands;
import dev.weft.bench.measure.Shape;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.Epilogue;
import dev.weft.op.Operator;
import dev.weft.plan.Reduction.Order;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * One rank of the item {@code reduce}, where ranks are processes; started by {@link WeftProcesses},
 * not by people. It answers lines as the C program of that item does.
 */
@Command(
        name = ReduceRankCommand.NAME,
        hidden = true,
        description = "One rank of the item reduce; answers each line with one.")
public final class ReduceRankCommand implements Callable<Integer> {

    static final String NAME = "reduce-rank";

    @Spec CommandSpec spec;

    @Parameters(arity = "3", description = "M, N and K of the product.")
    List<Long> sizes;

    @Override
    public Integer call() {
        // Before the ranks meet: whoever starts them waits for one after the other.
        answer("ready");
        try (World world = World.joined()) {
            world.run(this::serve);
        }
        return 0;
    }

    private void serve(Fabric fabric) throws IOException {
        Shape shape = new Shape(sizes.get(0), sizes.get(1), sizes.get(2));
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Operator<Matrix> operator = prepared(fabric, shape)) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                answer(
                        switch (line.charAt(0)) {
                            case 's' ->
                                    Long.toString(
                                            takeNs(
                                                    fabric,
                                                    operator,
                                                    Integer.parseInt(line.substring(2))));
                            case 'c' ->
                                    Double.toString(
                                            MadeUpData.checksum(operator.lastResult().product()));
                            default -> operator.plan().name();
                        });
            }
        }
    }

    private static Operator<Matrix> prepared(Fabric fabric, Shape shape) {
        try (Operands operands = Operands.of(shape, DType.FP32)) {
            return WeftRanks.reducing(fabric, operands, true, Order.WHOLE, Epilogue.none());
        }
    }

    private static long takeNs(Fabric fabric, Operator<Matrix> operator, int calls) {
        fabric.barrier();
        long startNs = System.nanoTime();
        for (int i = 0; i < calls; i++) {
            operator.callInPlace(View.PIPELINED);
        }
        return (System.nanoTime() - startNs) / calls;
    }

    private void answer(String line) {
        PrintWriter out = spec.commandLine().getOut();
        out.println(line);
        out.flush();
    }
}
