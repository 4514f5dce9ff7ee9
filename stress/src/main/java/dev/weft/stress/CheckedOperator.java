package dev.weft.stress;

import dev.weft.fabric.Fabric;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.Operator.PendingCall;
import dev.weft.op.Operator.View;
import dev.weft.op.Result;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.SplittableRandom;

/**
 * One rank's part of an operator with a random problem, every result of which is compared bit for
 * bit with the unfused product of the scalar engine, or of AMX where that multiplies. A changes
 * from call to call: its contents repeat every five calls, buffers every two, so that whatever
 * stays from an earlier call shows.
 */
final class CheckedOperator implements AutoCloseable {

    private static final int CONTENTS = 5;

    /** A result that is not the unfused one. */
    static final class WrongResult extends RuntimeException {
        private static final long serialVersionUID = 1L;

        WrongResult(String message) {
            super(message);
        }
    }

    private final int rank;
    private final String what;
    private final Shards shards;
    private final Matrix[] a = new Matrix[CONTENTS];
    private final Matrix[] unfused = new Matrix[CONTENTS];
    private final boolean keepsGathered;
    private final AllGatherMatmul operator;
    private PendingCall<Matrix> pending;
    private int calls;

    /**
     * Collective; {@code random} gives the same numbers on every rank.
     *
     * @param fewestRows of a shard, or zero
     */
    CheckedOperator(
            Fabric fabric,
            Algorithm algorithm,
            int fewestRows,
            SplittableRandom random,
            Arena arena) {
        this.rank = fabric.rank();
        DType[] types = DType.values();
        long[] rows = new long[fabric.size()];
        for (int r = 0; r < rows.length; r++) {
            rows[r] = random.nextInt(4) == 0 ? fewestRows : fewestRows + random.nextInt(40);
        }
        this.shards = Shards.of(rows);
        long k = 1L + random.nextInt(100);
        long n = 1L + random.nextInt(60);
        DType aType = types[random.nextInt(types.length)];
        DType bType = types[random.nextInt(types.length)];
        DType out = types[random.nextInt(types.length)];
        boolean transposed = random.nextBoolean();
        long data = random.nextLong();
        Matrix b = Matrix.allocate(arena, bType, transposed ? n : k, transposed ? k : n);
        new NormalData(data, CONTENTS).fill(b);
        Gemm auto = Gemms.auto(aType, bType);
        Gemm reference = auto.bits() == Gemm.Bits.PORTABLE ? Gemms.byName("scalar") : auto;
        PackedB packed = reference.pack(b, transposed, arena);
        for (int i = 0; i < CONTENTS; i++) {
            a[i] = Matrix.allocate(arena, aType, shards.totalRows(), k);
            new NormalData(data, i).fill(a[i]);
            unfused[i] = Matrix.allocate(arena, out, shards.totalRows(), n);
            reference.multiply(
                    a[i], 0, a[i].rows(), packed, unfused[i], 0, reference.scratch(k, n, arena));
            fabric.worked();
        }
        boolean pingPong = algorithm == Algorithm.RING && random.nextInt(3) == 0;
        this.keepsGathered = !pingPong && random.nextBoolean();
        AllGatherMatmulBuilder builder =
                AllGatherMatmul.on(fabric)
                        .a(shards, aType)
                        .b(b, transposed)
                        .output(out)
                        .algorithm(algorithm)
                        .chunkRows(1 + random.nextInt(20))
                        .commWorkers(1 + random.nextInt(3))
                        .computeWorkers(1 + random.nextInt(2));
        if (random.nextInt(3) == 0) {
            builder.chunkCols(1 + random.nextLong(k));
        }
        if (random.nextInt(4) == 0) {
            builder.waitForSummary();
        }
        if (pingPong) {
            builder.pingPong();
        } else if (keepsGathered) {
            builder.keepGathered();
        }
        this.what =
                algorithm.label()
                        + (pingPong ? " ping-pong" : "")
                        + ", shards "
                        + shards
                        + ", K "
                        + k
                        + ", N "
                        + n
                        + ", "
                        + aType
                        + " x "
                        + bType
                        + " -> "
                        + out;
        this.operator = builder.prepare();
    }

    /** Starts the next call; where {@code inPlace}, the shard is made where peers read it. */
    void start(boolean inPlace) {
        Matrix shard = a[calls % CONTENTS].rows(shards.firstRow(rank), shards.rows(rank));
        if (inPlace) {
            Matrix slot = operator.nextShard();
            slot.copyFrom(shard);
            shard = slot;
        }
        pending = operator.start(shard);
    }

    /** Bytes that were compared. */
    long finish() {
        Result<Matrix> result = pending.await();
        int content = calls++ % CONTENTS;
        long row = unfused[content].firstDifferentRow(result.product());
        if (row >= 0) {
            throw new WrongResult(what + ": row " + row + " of the product of call " + calls);
        }
        long bytes = unfused[content].rows() * unfused[content].rowBytes();
        if (keepsGathered) {
            if (!a[content].bitwiseEquals(result.gathered().orElseThrow())) {
                throw new WrongResult(what + ": gathered A of call " + calls);
            }
            bytes += a[content].rows() * a[content].rowBytes();
        }
        return bytes;
    }

    /** A call whose result nobody looks at, with the shard that lies in its place. */
    void unchecked(View view) {
        operator.callInPlace(view);
    }

    @Override
    public void close() {
        operator.close();
    }
}
