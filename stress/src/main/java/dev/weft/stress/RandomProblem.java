package dev.weft.stress;

import dev.weft.fabric.Fabric;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.Epilogue;
import dev.weft.op.MatmulAllReduce;
import dev.weft.op.MatmulReduceBuilder;
import dev.weft.op.MatmulReduceScatter;
import dev.weft.op.Operator;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/**
 * What one operator multiplies, in which types and cuts, and what is done to its sums: drawn at
 * random, and equal on all ranks that draw from the same numbers.
 *
 * @param rows who has which rows, of A for a gather and of C for a sum
 * @param kParts who has which part of K; used by sums alone
 * @param bCount the number of Bs
 * @param steps of the epilogue, as {@link Epilogue#parse} reads them; empty for none
 * @param pingPong whether a ring keeps arriving shards in two buffers
 * @param kept whether gathered A is kept
 * @param chunkCols of a gather; 0 where chunks are whole rows
 * @param data the seed of all operands
 */
record RandomProblem(
        Operation operation,
        String algorithm,
        Shards rows,
        Shards kParts,
        long n,
        int bCount,
        String steps,
        DType aType,
        DType bType,
        DType out,
        boolean transposed,
        boolean pingPong,
        boolean kept,
        boolean summaries,
        long chunkRows,
        long chunkCols,
        int commWorkers,
        int computeWorkers,
        long data) {

    private static final int MOST_ROWS = 40;

    /** The streams of random numbers that operands other than A are made of. */
    private static final int FIRST_B = 100;

    private static final int BIAS = 200;
    private static final int RESIDUAL = 201;
    private static final int NORM_WEIGHT = 202;
    private static final int NORM_BIAS = 203;
    private static final double EPSILON = 1e-5;

    /**
     * @param least rows and part of K of every rank: zero, or one
     */
    static RandomProblem of(
            Operation operation, String algorithm, int ranks, int least, SplittableRandom random) {
        boolean gathers = operation == Operation.GATHER;
        boolean ring = gathers && algorithm.equals(Algorithm.RING.label());
        boolean pingPong = ring && random.nextInt(3) == 0;
        Shards rows = shards(ranks, least, MOST_ROWS, random);
        Shards kParts =
                gathers
                        ? Shards.even(1L + random.nextInt(100), ranks)
                        : shards(ranks, least, 1 + 100 / ranks, random);
        List<String> steps = steps(random);
        int bCount = steps.contains("swiglu") || random.nextInt(6) == 0 ? 2 : 1;
        if (bCount == 2 && !steps.contains("swiglu")) {
            // These need a single result.
            steps.removeAll(List.of("residual", "rmsnorm", "layernorm"));
        }
        return new RandomProblem(
                operation,
                algorithm,
                rows,
                kParts,
                1L + random.nextInt(60),
                bCount,
                String.join(",", steps),
                type(random),
                type(random),
                type(random),
                random.nextBoolean(),
                pingPong,
                gathers && !pingPong && random.nextBoolean(),
                gathers && random.nextInt(4) == 0,
                1L + random.nextInt(20),
                gathers && random.nextInt(3) == 0 ? 1 + random.nextLong(kParts.totalRows()) : 0,
                1 + random.nextInt(3),
                1 + random.nextInt(2),
                random.nextLong());
    }

    private static DType type(SplittableRandom random) {
        return DType.UNSCALED.get(random.nextInt(DType.UNSCALED.size()));
    }

    private static Shards shards(int ranks, int least, int most, SplittableRandom random) {
        long[] parts = new long[ranks];
        Arrays.setAll(parts, r -> random.nextInt(4) == 0 ? least : least + random.nextInt(most));
        return Shards.of(parts);
    }

    /** None for half of all problems. */
    private static List<String> steps(SplittableRandom random) {
        List<String> steps = new ArrayList<>();
        if (random.nextBoolean()) {
            return steps;
        }
        String[] functions = {"relu", "gelu", "gelu-tanh", "silu", "swiglu"};
        if (random.nextBoolean()) {
            steps.add("bias");
        }
        if (random.nextBoolean()) {
            steps.add(functions[random.nextInt(functions.length)]);
        }
        if (random.nextBoolean()) {
            steps.add("residual");
        }
        if (random.nextInt(3) == 0) {
            steps.add(random.nextBoolean() ? "rmsnorm" : "layernorm");
        }
        return steps;
    }

    boolean isSum() {
        return operation != Operation.GATHER;
    }

    /** Whether it is a gather that the fabric itself does, on MPI. */
    boolean isFabricsOwn() {
        return operation == Operation.GATHER && algorithm.equals(Algorithm.SEQUENTIAL.label());
    }

    private long k() {
        return kParts.totalRows();
    }

    /** A of all ranks. */
    Matrix a(int content, Arena arena) {
        return normal(aType, rows.totalRows(), k(), content, arena);
    }

    /** The part of it that a rank has. */
    Matrix input(Matrix a, int rank) {
        return operation == Operation.GATHER
                ? a.rows(rows.firstRow(rank), rows.rows(rank))
                : a.block(0, a.rows(), kParts.firstRow(rank), kParts.rows(rank));
    }

    /** The first of the rows that a rank gets. */
    private long firstRow(int rank) {
        return operation == Operation.SCATTER ? rows.firstRow(rank) : 0;
    }

    private long rowCount(int rank) {
        return operation == Operation.SCATTER ? rows.rows(rank) : rows.totalRows();
    }

    /** What is multiplied and added besides A, of all ranks. */
    record Operands(
            List<Matrix> bs, Matrix bias, Matrix residual, Matrix normWeight, Matrix normBias) {}

    Operands operands(Arena arena) {
        return new Operands(
                IntStream.range(0, bCount).mapToObj(index -> b(index, arena)).toList(),
                normal(DType.FP32, 1, n, BIAS, arena),
                normal(out, rows.totalRows(), n, RESIDUAL, arena),
                normal(DType.FP32, 1, n, NORM_WEIGHT, arena),
                normal(DType.FP32, 1, n, NORM_BIAS, arena));
    }

    private Matrix b(int index, Arena arena) {
        return normal(bType, transposed ? n : k(), transposed ? k() : n, FIRST_B + index, arena);
    }

    private Matrix normal(DType type, long height, long width, int stream, Arena arena) {
        Matrix matrix = Matrix.allocate(arena, type, height, width);
        new NormalData(data, stream).fill(matrix);
        return matrix;
    }

    private Epilogue epilogue(Operands with, long firstRow, long count) {
        return steps.isEmpty()
                ? Epilogue.none()
                : Epilogue.parse(
                        steps,
                        with::bias,
                        () -> with.residual().rows(firstRow, count),
                        with::normWeight,
                        with::normBias,
                        EPSILON);
    }

    /** What a rank must get: of products on one rank, which know neither chunks nor arrivals. */
    List<Matrix> expected(Matrix a, Operands with, int rank, Arena arena) {
        Gemm auto = Gemms.auto(aType, bType);
        boolean portable = operation != Operation.GATHER || auto.bits() == Gemm.Bits.PORTABLE;
        Gemm reference = portable ? Gemms.byName("scalar") : auto;
        List<Matrix> sums = with.bs().stream().map(b -> sums(reference, a, b, arena)).toList();
        List<Matrix> results =
                sums.subList(0, steps.contains("swiglu") ? 1 : bCount).stream()
                        .map(s -> Matrix.allocate(arena, out, s.rows(), s.cols()))
                        .toList();
        epilogue(with, 0, rows.totalRows()).apply(sums, results);
        return results.stream().map(c -> c.rows(firstRow(rank), rowCount(rank))).toList();
    }

    private Matrix sums(Gemm reference, Matrix a, Matrix b, Arena arena) {
        boolean byRank =
                operation != Operation.GATHER && Reduction.of(algorithm).order() == Order.BY_RANK;
        Matrix sums = null;
        for (int r = 0; byRank && r < kParts.ranks(); r++) {
            if (kParts.rows(r) > 0) {
                Matrix part = product(reference, input(a, r), part(b, r), arena);
                sums = sums == null ? part : sum(sums, part);
            }
        }
        return sums == null ? product(reference, a, b, arena) : sums;
    }

    /** The part of a B that a rank has. */
    private Matrix part(Matrix b, int rank) {
        if (operation == Operation.GATHER) {
            return b;
        }
        long first = kParts.firstRow(rank);
        long count = kParts.rows(rank);
        return transposed ? b.block(0, b.rows(), first, count) : b.rows(first, count);
    }

    private Matrix product(Gemm reference, Matrix a, Matrix b, Arena arena) {
        Matrix product = Matrix.allocate(arena, DType.FP32, a.rows(), n);
        reference.multiply(
                a,
                0,
                a.rows(),
                reference.pack(b, transposed, arena),
                product,
                0,
                reference.scratch(a.cols(), n, arena));
        return product;
    }

    private static Matrix sum(Matrix sums, Matrix part) {
        for (long row = 0; row < sums.rows(); row++) {
            for (long col = 0; col < sums.cols(); col++) {
                sums.set(row, col, sums.get(row, col) + part.get(row, col));
            }
        }
        return sums;
    }

    /** Collective. */
    Operator<Matrix> prepare(Fabric fabric, Operands with) {
        return operation == Operation.GATHER ? gather(fabric, with) : reduce(fabric, with);
    }

    private Operator<Matrix> gather(Fabric fabric, Operands with) {
        AllGatherMatmulBuilder builder =
                AllGatherMatmul.on(fabric)
                        .a(rows, aType)
                        .output(out)
                        .algorithm(Algorithm.of(algorithm))
                        .chunkRows(chunkRows)
                        .commWorkers(commWorkers)
                        .computeWorkers(computeWorkers)
                        .epilogue(epilogue(with, 0, rows.totalRows()));
        with.bs().forEach(b -> builder.b(b, transposed));
        if (chunkCols > 0) {
            builder.chunkCols(chunkCols);
        }
        if (summaries) {
            builder.waitForSummary();
        }
        if (pingPong) {
            builder.pingPong();
        } else if (kept) {
            builder.keepGathered();
        }
        return builder.prepare();
    }

    private Operator<Matrix> reduce(Fabric fabric, Operands with) {
        int rank = fabric.rank();
        MatmulReduceBuilder<? extends Operator<Matrix>> builder =
                operation == Operation.ALL
                        ? MatmulAllReduce.on(fabric)
                        : MatmulReduceScatter.on(fabric);
        builder.a(rows, kParts, aType)
                .output(out)
                .algorithm(Reduction.of(algorithm))
                .engine("portable")
                .chunkRows(chunkRows)
                .computeWorkers(computeWorkers)
                .epilogue(epilogue(with, firstRow(rank), rowCount(rank)));
        with.bs().forEach(b -> builder.b(part(b, rank), transposed));
        return builder.prepare();
    }

    @Override
    public String toString() {
        return "%s %s%s, shards %s, K %s, N %s, %s x %d %s -> %s, epilogue '%s'"
                .formatted(
                        operation.label(),
                        algorithm,
                        pingPong ? " ping-pong" : "",
                        rows,
                        operation == Operation.GATHER ? k() : kParts,
                        n,
                        aType,
                        bCount,
                        bType,
                        out,
                        steps);
    }
}
