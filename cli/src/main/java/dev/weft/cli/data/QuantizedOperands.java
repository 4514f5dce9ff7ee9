package dev.weft.cli.data;

import dev.weft.cli.options.ProblemSpec;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.lang.foreign.Arena;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Inputs of 8 bits, quantized when they are first needed. As {@link Operands} they are the fp32
 * values of the quantized elements, against which products are checked. Thread-safe.
 */
public final class QuantizedOperands implements Operands {

    private final Operands inputs;
    private final ProblemSpec spec;
    private final Scaling scaling;
    private final Arena arena;
    private final Map<Integer, Matrix> rows = new ConcurrentHashMap<>();
    private final Map<Matrix, ScaledMatrix> scaledBs = new ConcurrentHashMap<>();
    private final Map<Integer, Matrix> shards = new ConcurrentHashMap<>();
    private final Map<Matrix, Matrix> wide = new ConcurrentHashMap<>();

    /**
     * @param arena how long they are kept
     */
    public QuantizedOperands(Operands inputs, ProblemSpec spec, Arena arena) {
        this.inputs = inputs;
        this.spec = spec;
        this.scaling = spec.fp8().scaling();
        this.arena = arena;
    }

    /** Rows with their scales in front. */
    @Override
    public Matrix moved(int worldRank) {
        return rows.computeIfAbsent(worldRank, this::quantized);
    }

    private Matrix quantized(int worldRank) {
        Matrix shard = inputs.shard(worldRank);
        if (scaling != Scaling.TENSOR) {
            return ScaledMatrix.rowsOf(arena, shard, spec.multipliedA(), scaling);
        }
        // One scale for all shards, so that it does not depend on how they are cut.
        float largest = 0;
        for (int member : spec.members(worldRank)) {
            largest = Math.max(largest, ScaledMatrix.largest(inputs.shard(member)));
        }
        DType type = spec.multipliedA();
        long bytes = ScaledMatrix.rowBytes(shard.cols(), scaling);
        Matrix target = Matrix.allocate(arena, type, shard.rows(), bytes);
        ScaledMatrix.inRows(target, shard.cols(), scaling)
                .quantize(shard, ScaledMatrix.scale(type, largest));
        return target;
    }

    /** The rank's B; ranks with the same B share it. */
    public ScaledMatrix scaledB(int worldRank) {
        return scaledBs.computeIfAbsent(
                inputs.b(worldRank),
                b -> ScaledMatrix.ofB(arena, b, spec.transposeB(), spec.multipliedB(), scaling));
    }

    @Override
    public Matrix shard(int worldRank) {
        return shards.computeIfAbsent(
                worldRank,
                rank -> ScaledMatrix.inRows(moved(rank), spec.k(), scaling).dequantize(arena));
    }

    @Override
    public Matrix b(int worldRank) {
        return wide.computeIfAbsent(inputs.b(worldRank), b -> scaledB(worldRank).dequantize(arena));
    }

    @Override
    public DType typeOfA(ProblemSpec problem) {
        return DType.FP32;
    }

    @Override
    public Matrix allMoved(ProblemSpec problem, int worldRank, Arena own) {
        long bytes = ScaledMatrix.rowBytes(spec.k(), scaling);
        Matrix all = Matrix.allocate(own, spec.multipliedA(), spec.m(), bytes);
        long row = 0;
        for (int member : spec.members(worldRank)) {
            Matrix part = moved(member);
            all.rows(row, part.rows()).copyFrom(part);
            row += part.rows();
        }
        return all;
    }
}
