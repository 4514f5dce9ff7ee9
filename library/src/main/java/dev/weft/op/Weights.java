package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Agreement;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.op.MatmulBuilder.Side;
import dev.weft.plan.Hosts;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import dev.weft.tensor.ScaledMatrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;

/**
 * A right-hand side in host memory that is packed once and then used by any number of operators, as
 * {@code b(weights)}. They may differ in rows, epilogue, algorithm and kind, but have the same
 * ranks, type of A and engine. Every rank has its own object, which must outlive its operators;
 * ranks of one host that give the same matrix share one copy. Not thread-safe.
 *
 * <p>On a GPU {@link dev.weft.cuda.op.CudaWeights} is the same. There a {@link
 * dev.weft.cuda.DeviceMatrix} whose rows are aligned to 16 bytes is also read where it is, by any
 * number of operators that gather.
 */
public final class Weights implements AutoCloseable {

    private final Transport fabric;
    private final String engine;
    private final Gemm gemm;
    private final DType aType;
    private final SharedB.Packed packed;
    private final Side side;
    private final List<HostOperator> users = new ArrayList<>();
    private boolean closed;

    private Weights(
            Transport fabric, String engine, DType aType, Gemm own, SharedB.Source b, Side side) {
        this.fabric = fabric;
        this.engine = engine;
        this.aType = aType;
        this.side = side;
        int blocks = b.blocks() == null ? 0 : 1 + b.blocks().type().ordinal();
        new Agreement(fabric)
                .on("the blocks of weights (0 none, 1 q4_0, 2 q8_0, 4 q4_k)", blocks)
                .settle();
        this.gemm = AllGatherMatmulBuilder.agreedEngine(fabric, own, engine.equals("auto"));
        SharedB.Packed all = new SharedB(fabric, gemm).pack(b, null);
        this.packed = side.dtype().isScaled() ? all.ofScaled() : all;
        try {
            // Releases every rank's copy to peers that read it.
            fabric.barrier();
        } catch (RuntimeException e) {
            packed.region().close();
            throw e;
        }
    }

    /** Packs [K, N] for an A of the same type, and the engine {@code auto}. Collective. */
    public static Weights pack(Fabric fabric, Matrix b) {
        return pack(fabric, b, false, b.dtype(), "auto");
    }

    /**
     * Packs [K, N], or [N, K] if {@code transposed}. Collective. The matrix may be freed
     * afterwards.
     *
     * @param aType the type of A in all operators
     * @param engine that of all operators: see {@link MatmulBuilder#engine(String)}
     */
    public static Weights pack(
            Fabric fabric, Matrix b, boolean transposed, DType aType, String engine) {
        MatmulBuilder.checkAccess(b);
        return pack(fabric, b, b.dtype(), transposed, aType, engine, b.describe());
    }

    /**
     * Packs a matrix with scales: each element is multiplied by its scale and rounded to fp32.
     * Collective.
     */
    public static Weights pack(
            Fabric fabric, ScaledMatrix b, boolean transposed, DType aType, String engine) {
        Matrix values = b.dequantize(Arena.ofAuto());
        String text = b.values().describe();
        return pack(fabric, values, b.values().dtype(), transposed, aType, engine, text);
    }

    /**
     * Packs a matrix in blocks, [N, K]. Collective. Rows of A are quantized to 8 bits and products
     * summed as whole numbers, 32 k at a time ({@code docs/quantized.md}); the bits are the same on
     * every machine and for any number of ranks, if K is cut between blocks.
     *
     * @param b of a type of {@link BlockType#MULTIPLIED}
     * @param aType fp32, fp16 or bf16
     * @param engine {@code auto}, {@code portable}, {@code native} or {@code scalar}
     */
    public static Weights pack(Fabric fabric, QuantizedMatrix b, DType aType, String engine) {
        return pack(
                fabric,
                engine,
                aType,
                () -> {
                    if (aType.isScaled() || !BlockType.MULTIPLIED.contains(b.type())) {
                        throw new IllegalArgumentException(
                                "A of %s with B %s: expected fp32, fp16 or bf16, and q8_0, q4_0 or q4_k"
                                        .formatted(aType.label(), b.describe()));
                    }
                    return Gemms.ofBlocks(engine, b.type());
                },
                SharedB.Source.of(b),
                MatmulBuilder.shape(b.describe(), DType.FP32, b.rows(), b.cols(), true));
    }

    private static Weights pack(
            Fabric fabric,
            Matrix values,
            DType bType,
            boolean transposed,
            DType aType,
            String engine,
            String text) {
        return pack(
                fabric,
                engine,
                aType,
                () ->
                        Gemms.byName(
                                engine,
                                MatmulBuilder.multiplied(aType),
                                MatmulBuilder.multiplied(bType)),
                new SharedB.Source(values, transposed, null),
                MatmulBuilder.shape(text, bType, values.rows(), values.cols(), transposed));
    }

    private static Weights pack(
            Fabric fabric,
            String engine,
            DType aType,
            Supplier<Gemm> gemm,
            SharedB.Source b,
            Side side) {
        Transport transport = Transport.of(Objects.requireNonNull(fabric, "fabric"));
        try {
            if (!Gemms.NAMES.contains(engine)) {
                throw Gemms.unknown(engine);
            }
            return new Weights(transport, engine, aType, gemm.get(), b, side);
        } catch (RuntimeException | Error e) {
            fabric.fail(e);
            throw e;
        }
    }

    /** Bytes of the packed copy, which ranks of one host may share. */
    public long bytes() {
        return packed.b().bytes();
    }

    /**
     * Packs another matrix of the same shape and type into the same memory: from now on all
     * operators multiply by it. Collective. If a rank's does not fit, all ranks refuse, and nothing
     * is replaced. Ranks that share a copy must give the same matrix again. No call of these
     * operators may be under way: a rank where one is refuses alone, and the others wait for it
     * until the deadline.
     *
     * @throws UnsupportedOperationException if the weights have scales or blocks
     */
    public void replace(Matrix b) {
        checkOpen();
        users.forEach(HostOperator::checkNotUnderWay);
        try {
            new SharedB(fabric, gemm).replace("the B of these weights", packed, b);
        } catch (IllegalArgumentException | UnsupportedOperationException e) {
            // All ranks refuse alike, and nothing was replaced.
            throw e;
        } catch (RuntimeException e) {
            fabric.fail(e);
            throw e;
        }
    }

    /** Frees this rank's part of the packed copy; refused while an operator of it uses that. */
    @Override
    public void close() {
        if (!users.isEmpty()) {
            throw new IllegalStateException(
                    "weights that %d operators use: close those first".formatted(users.size()));
        }
        if (!closed) {
            closed = true;
            packed.region().close();
        }
    }

    private void checkOpen() {
        if (closed) {
            throw new IllegalStateException("the weights are closed");
        }
    }

    void usedBy(HostOperator operator) {
        users.add(operator);
    }

    void leftBy(HostOperator operator) {
        users.remove(operator);
    }

    Side side() {
        return side;
    }

    SharedB.Packed packed() {
        return packed;
    }

    /** What a rank of this host has packed, which has {@code k} rows. */
    PackedB of(int rank, long k) {
        Hosts hosts = fabric.hosts();
        Region region = packed.region();
        int home = packed.shared() ? hosts.first(hosts.hostOf(rank)) : rank;
        return rank == fabric.rank()
                ? packed.b()
                : gemm.packed(k, packed.b().n(), packed.b().type(), region.part(home));
    }

    /**
     * The engine that all of these are packed for; refuses those that do not fit an operator.
     *
     * @param sides the number of the operator's Bs, with those that are not weights
     */
    static Gemm engine(List<Weights> all, int sides, Fabric fabric, String wanted, DType aType) {
        Weights first = all.getFirst();
        if (first.packed.b().blocks() != null && sides > all.size()) {
            throw new IllegalArgumentException(
                    "weights %s beside a B that is no weights: expected weights of the same blocks"
                            .formatted(first.side.text()));
        }
        for (Weights each : all) {
            each.checkOpen();
            if (each.fabric != fabric) {
                throw new IllegalArgumentException(
                        "weights %s of another group of ranks: expected the operator's"
                                .formatted(each.side.text()));
            }
            String expected = wanted == null ? first.engine : wanted;
            if (each.aType != aType || !each.engine.equals(expected)) {
                throw new IllegalArgumentException(
                        "weights %s for A of %s and engine %s, in an operator with A of %s and engine %s: expected the same"
                                .formatted(
                                        each.side.text(),
                                        each.aType.label(),
                                        each.engine,
                                        aType.label(),
                                        expected));
            }
        }
        for (Weights each : all) {
            if (!each.gemm.name().equals(first.gemm.name())
                    || each.packed.b().blockDepth() != first.packed.b().blockDepth()) {
                throw new IllegalArgumentException(
                        "weights %s are packed for engine %s, %s for %s: expected one that takes the types of both, such as portable"
                                .formatted(
                                        first.side.text(),
                                        first.gemm.name(),
                                        each.side.text(),
                                        each.gemm.name()));
            }
        }
        return first.gemm;
    }
}
