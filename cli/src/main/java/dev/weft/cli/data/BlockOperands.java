package dev.weft.cli.data;

import dev.weft.cli.options.ProblemSpec;
import dev.weft.fabric.Fabric;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.gemm.RowQuantizer;
import dev.weft.op.Weights;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/**
 * Inputs whose B is in blocks: as a file has it, or quantized when it is first needed. As {@link
 * Operands} B is the fp32 values of the blocks, against which products are checked. Thread-safe.
 */
public final class BlockOperands implements Operands {

    private final Operands inputs;
    private final ProblemSpec spec;
    private final Supplier<QuantizedMatrix> ofFile;
    private final Arena arena;
    private final Map<Integer, QuantizedMatrix> blocks = new ConcurrentHashMap<>();
    private final Map<Integer, Matrix> values = new ConcurrentHashMap<>();
    private final Map<Matrix, QuantizedMatrix> quantized = new ConcurrentHashMap<>();
    private final Map<Integer, QuantizedMatrix> wholes = new ConcurrentHashMap<>();
    private final Map<Integer, List<Weights>> weights = new ConcurrentHashMap<>();

    /**
     * @param ofFile gives the whole B, [N, K], if a file has such blocks; else null
     * @param arena how long they are kept
     */
    public BlockOperands(
            Operands inputs, ProblemSpec spec, Supplier<QuantizedMatrix> ofFile, Arena arena) {
        this.inputs = inputs;
        this.spec = spec;
        this.ofFile = ofFile;
        this.arena = arena;
    }

    /** The rank's B, [N, K]; ranks with the same B share it. */
    QuantizedMatrix blocks(int worldRank) {
        return blocks.computeIfAbsent(
                worldRank,
                rank ->
                        ofFile != null
                                ? spec.b(rank).of(ofFile.get())
                                : quantized.computeIfAbsent(inputs.b(rank), this::quantize));
    }

    private QuantizedMatrix quantize(Matrix b) {
        return QuantizedMatrix.ofB(arena, b, spec.transposeB(), spec.blocks());
    }

    /**
     * The rank's B, packed once for all operators of a group, in parts of equally many columns.
     * Collective.
     */
    public List<Weights> weights(Fabric group, int worldRank, String engine, int parts) {
        List<Weights> known = weights.get(worldRank);
        if (known != null) {
            return known;
        }
        // Not while the map is locked: other ranks, which may share it, take part.
        QuantizedMatrix all = blocks(worldRank);
        long n = all.rows() / parts;
        List<Weights> packed = new ArrayList<>();
        for (int part = 0; part < parts; part++) {
            QuantizedMatrix own = all.block(part * n, n, 0, all.cols());
            packed.add(Weights.pack(group, own, spec.aType(), engine));
        }
        weights.put(worldRank, packed);
        return packed;
    }

    /** Frees the rank's {@link #weights}. */
    public void close(int worldRank) {
        List<Weights> packed = weights.remove(worldRank);
        if (packed != null) {
            packed.forEach(Weights::close);
        }
    }

    /** Packs rows {@code from} to {@code end} of the whole B that the rank's product needs. */
    public PackedB pack(Gemm gemm, int worldRank, long from, long end, Arena own) {
        long n = blocks(worldRank).rows();
        PackedB packed =
                gemm.packed(
                        end - from,
                        n,
                        DType.FP32,
                        own.allocate(
                                gemm.packedBytes(end - from, n, DType.FP32),
                                PackedB.ALIGNMENT_BYTES));
        QuantizedMatrix all = whole(worldRank);
        packed.fill(all.block(0, n, from, end - from), 0, 1);
        return packed;
    }

    /** Copied once for all parts of K, and for all ranks of a group. */
    private QuantizedMatrix whole(int worldRank) {
        return spec.gathers()
                ? blocks(worldRank)
                : wholes.computeIfAbsent(
                        spec.members(worldRank).getFirst(), first -> joined(worldRank));
    }

    private QuantizedMatrix joined(int worldRank) {
        QuantizedMatrix mine = blocks(worldRank);
        QuantizedMatrix all = QuantizedMatrix.allocate(arena, mine.type(), mine.rows(), spec.k());
        long col = 0;
        for (int member : spec.members(worldRank)) {
            QuantizedMatrix part = blocks(member);
            for (long row = 0; row < part.rows() && part.cols() > 0; row++) {
                MemorySegment.copy(
                        part.data(),
                        part.offset(row, 0),
                        all.data(),
                        all.offset(row, col),
                        part.type().rowBytes(part.cols()));
            }
            col += part.cols();
        }
        return all;
    }

    /** The values that rows of A have once they are quantized. */
    public static Matrix valuesOfA(Matrix a, Arena own) {
        return RowQuantizer.values(a, own);
    }

    @Override
    public Matrix shard(int worldRank) {
        return inputs.shard(worldRank);
    }

    @Override
    public void copyShard(int worldRank, Matrix target) {
        inputs.copyShard(worldRank, target);
    }

    @Override
    public DType typeOfB(ProblemSpec problem) {
        return DType.FP32;
    }

    @Override
    public Matrix b(int worldRank) {
        return values.computeIfAbsent(worldRank, this::stored);
    }

    /** The values, [N, K] or [K, N], as B is given. */
    private Matrix stored(int worldRank) {
        Matrix wide = blocks(worldRank).dequantize(arena);
        if (spec.transposeB()) {
            return wide;
        }
        Matrix turned = Matrix.allocate(arena, DType.FP32, wide.cols(), wide.rows());
        for (long n = 0; n < wide.rows(); n++) {
            for (long k = 0; k < wide.cols(); k++) {
                turned.set(k, n, wide.get(n, k));
            }
        }
        return turned;
    }
}
