package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.exec.host.PreparedEpilogue;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Hosts;
import dev.weft.plan.Reduction;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Bits of products that are summed over ranks, whatever the cuts. */
class MatmulReduceTest {

    private static final int CALLS = 3;

    /** One problem: who has what. */
    private record Case(
            Shards rows, Shards kParts, Hosts hosts, long[] columns, DType type, DType out) {

        static Case random(Random random, int ranks, boolean oneHost) {
            DType[] types = DType.values();
            DType type = types[random.nextInt(3)];
            DType out = random.nextBoolean() ? type : DType.FP32;
            long[] columns = new long[1 + random.nextInt(2)];
            Arrays.setAll(columns, i -> 1 + random.nextInt(random.nextBoolean() ? 60 : 400));
            return new Case(
                    shards(random, ranks, 70),
                    shards(random, ranks, 90),
                    oneHost ? Hosts.one(ranks) : hosts(random, ranks),
                    columns,
                    type,
                    out);
        }

        private static Hosts hosts(Random random, int ranks) {
            int first = 1 + random.nextInt(ranks);
            return first == ranks ? Hosts.one(ranks) : Hosts.of(first, ranks - first);
        }

        /** Some of them empty. */
        private static Shards shards(Random random, int ranks, int most) {
            long[] parts = new long[ranks];
            Arrays.setAll(parts, r -> random.nextInt(4) == 0 ? 0 : random.nextInt(most));
            return Shards.of(parts);
        }
    }

    @ParameterizedTest
    @EnumSource(Reduction.class)
    void bitsAreThoseOfTheDefinition(Reduction reduction) {
        Random random = new Random(21 + reduction.ordinal());
        for (int ranks = 1; ranks <= 5; ranks++) {
            // Auto tries several plans each time.
            for (int i = 0; i < (reduction == Reduction.AUTO ? 1 : 3); i++) {
                Case problem = Case.random(random, ranks, reduction == Reduction.DIRECT);
                long chunkRows = 1 + random.nextInt(80);
                for (boolean all : new boolean[] {false, true}) {
                    check(problem, reduction, reduction.order(), all, chunkRows, 1 + i % 3);
                }
            }
        }
    }

    /** Auto too, which tries those that give the order. */
    @ParameterizedTest
    @EnumSource(names = {"AUTO", "MESH_PUSH", "SEQUENTIAL"})
    void partsInBf16AreRoundedOnce(Reduction reduction) {
        Random random = new Random(16 + reduction.ordinal());
        for (int ranks = 1; ranks <= 4; ranks++) {
            Case problem = Case.random(random, ranks, false);
            for (boolean all : new boolean[] {false, true}) {
                check(problem, reduction, Order.BY_RANK_BF16, all, 20, 2);
            }
        }
    }

    /** Calls with new A each, so that halves are used again; every rank compares. */
    private static void check(
            Case problem,
            Reduction reduction,
            Order order,
            boolean all,
            long chunkRows,
            int workers) {
        long m = problem.rows().totalRows();
        long k = problem.kParts().totalRows();
        try (Arena arena = Arena.ofShared();
                World world = World.threads(problem.rows().ranks())) {
            Matrix[] a = new Matrix[CALLS];
            for (int call = 0; call < CALLS; call++) {
                a[call] = Matrix.allocate(arena, problem.type(), m, k);
                new NormalData(call, 0).fill(a[call]);
            }
            Matrix[] b = new Matrix[problem.columns().length];
            for (int i = 0; i < b.length; i++) {
                b[i] = Matrix.allocate(arena, problem.type(), k, problem.columns()[i]);
                new NormalData(7, i).fill(b[i]);
            }
            world.run(
                    given -> {
                        Transport fabric = OnHosts.of(Transport.of(given), problem.hosts());
                        Shards kParts = problem.kParts();
                        long from = kParts.firstRow(fabric.rank());
                        long own = kParts.rows(fabric.rank());
                        var builder = builder(fabric, all);
                        builder.a(problem.rows(), kParts, problem.type())
                                .output(problem.out())
                                .algorithm(reduction)
                                .order(order)
                                // The expected sums are this engine's.
                                .engine("portable")
                                .computeWorkers(workers);
                        if (reduction != Reduction.AUTO) {
                            builder.chunkRows(chunkRows);
                        }
                        for (Matrix side : b) {
                            builder.b(side.rows(from, own));
                        }
                        try (Operator<Matrix> operator = builder.prepare()) {
                            for (Matrix whole : a) {
                                Result<Matrix> result = operator.call(whole.block(0, m, from, own));
                                for (int i = 0; i < b.length; i++) {
                                    Matrix expected = expected(arena, problem, order, whole, b[i]);
                                    Matrix rows =
                                            all
                                                    ? expected
                                                    : expected.rows(
                                                            problem.rows().firstRow(fabric.rank()),
                                                            problem.rows().rows(fabric.rank()));
                                    assertTrue(
                                            rows.bitwiseEquals(result.product(i)),
                                            () ->
                                                    "%s %s all %s chunks of %s: row %s of rank %s"
                                                            .formatted(
                                                                    problem,
                                                                    reduction,
                                                                    all,
                                                                    chunkRows,
                                                                    rows.firstDifferentRow(
                                                                            result.product(0)),
                                                                    fabric.rank()));
                                }
                            }
                        }
                    });
        }
    }

    private static MatmulReduceBuilder<? extends Operator<Matrix>> builder(
            Fabric fabric, boolean all) {
        return all ? MatmulAllReduce.on(fabric) : MatmulReduceScatter.on(fabric);
    }

    /** By the definition of the order, with products of one rank. */
    private static Matrix expected(Arena arena, Case problem, Order order, Matrix a, Matrix b) {
        Matrix sums = null;
        if (order == Order.WHOLE) {
            sums = product(arena, a, b);
        } else {
            Shards kParts = problem.kParts();
            for (int r = 0; r < kParts.ranks(); r++) {
                if (kParts.rows(r) > 0) {
                    Matrix part =
                            product(
                                    arena,
                                    a.block(0, a.rows(), kParts.firstRow(r), kParts.rows(r)),
                                    b.rows(kParts.firstRow(r), kParts.rows(r)));
                    if (order == Order.BY_RANK_BF16) {
                        round(part);
                    }
                    sums = sums == null ? part : sum(sums, part);
                }
            }
            sums = sums == null ? product(arena, a, b) : sums;
        }
        Matrix rounded = Matrix.allocate(arena, problem.out(), a.rows(), b.cols());
        for (long row = 0; row < a.rows(); row++) {
            for (long col = 0; col < b.cols(); col++) {
                rounded.set(row, col, sums.get(row, col));
            }
        }
        return rounded;
    }

    private static void round(Matrix part) {
        for (long row = 0; row < part.rows(); row++) {
            for (long col = 0; col < part.cols(); col++) {
                part.set(row, col, DType.BF16.round(part.get(row, col)));
            }
        }
    }

    private static Matrix sum(Matrix sums, Matrix part) {
        for (long row = 0; row < sums.rows(); row++) {
            for (long col = 0; col < sums.cols(); col++) {
                sums.set(row, col, sums.get(row, col) + part.get(row, col));
            }
        }
        return sums;
    }

    private static Matrix product(Arena arena, Matrix a, Matrix b) {
        Gemm gemm = Gemms.portable();
        Matrix c = Matrix.allocate(arena, DType.FP32, a.rows(), b.cols());
        gemm.multiply(
                a,
                0,
                a.rows(),
                gemm.pack(b, false, arena),
                c,
                0,
                gemm.scratch(a.cols(), b.cols(), arena));
        return c;
    }

    /** Each rank's rows of what the same epilogue makes of the whole sums. */
    @Test
    void epiloguesAreAppliedToWholeSums() {
        int ranks = 3;
        Shards rows = Shards.of(17, 0, 30);
        Shards kParts = Shards.of(20, 31, 9);
        long n = 24;
        try (Arena arena = Arena.ofShared();
                World world = World.threads(ranks)) {
            Matrix a = normal(arena, DType.BF16, rows.totalRows(), kParts.totalRows(), 0);
            Matrix gate = normal(arena, DType.BF16, kParts.totalRows(), n, 1);
            Matrix up = normal(arena, DType.BF16, kParts.totalRows(), n, 2);
            Matrix bias = normal(arena, DType.FP32, 1, n, 3);
            Matrix residual = normal(arena, DType.BF16, rows.totalRows(), n, 4);
            world.run(
                    fabric -> {
                        int rank = fabric.rank();
                        for (Reduction reduction : List.of(Reduction.DIRECT, Reduction.CHAIN)) {
                            for (boolean all : new boolean[] {false, true}) {
                                long first = all ? 0 : rows.firstRow(rank);
                                long count = all ? rows.totalRows() : rows.rows(rank);
                                Epilogue steps =
                                        Epilogue.none()
                                                .swiglu()
                                                .bias(bias)
                                                .geluTanh()
                                                .residual(residual.rows(first, count));
                                long from = kParts.firstRow(rank);
                                long own = kParts.rows(rank);
                                try (Operator<Matrix> operator =
                                        builder(fabric, all)
                                                .a(rows, kParts, DType.BF16)
                                                .b(gate.rows(from, own))
                                                .b(up.rows(from, own))
                                                .output(DType.BF16)
                                                .engine("portable")
                                                .algorithm(reduction)
                                                .chunkRows(7)
                                                .epilogue(steps)
                                                .prepare()) {
                                    Matrix found =
                                            operator.call(a.block(0, a.rows(), from, own))
                                                    .product();
                                    Matrix expected = Matrix.allocate(arena, DType.BF16, count, n);
                                    var finish =
                                            new PreparedEpilogue(
                                                    steps.fitting(List.of(n, n)), count);
                                    finish.new Scratch()
                                            .apply(
                                                    0,
                                                    product(arena, a, gate).rows(first, count),
                                                    0,
                                                    product(arena, a, up).rows(first, count),
                                                    0,
                                                    count,
                                                    0,
                                                    n,
                                                    expected,
                                                    0);
                                    assertTrue(expected.bitwiseEquals(found), reduction.label());
                                }
                            }
                        }
                    });
        }
    }

    private static Matrix normal(Arena arena, DType type, long rows, long cols, int stream) {
        Matrix matrix = Matrix.allocate(arena, type, rows, cols);
        new NormalData(5, stream).fill(matrix);
        return matrix;
    }

    @Test
    void viewsAndStartWork() {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(3)) {
            Shards even = Shards.even(90, 3);
            Matrix b = Matrix.allocate(arena, DType.FP32, 30, 40);
            new NormalData(1, 1).fill(b);
            world.run(
                    fabric -> {
                        for (Reduction reduction : Reduction.values()) {
                            try (MatmulReduceScatter operator =
                                    MatmulReduceScatter.on(fabric)
                                            .a(even, even, DType.FP32)
                                            .b(b)
                                            .algorithm(reduction)
                                            .prepare()) {
                                for (View view : View.values()) {
                                    new NormalData(1, 0).fill(operator.nextShard());
                                    assertTrue(operator.callInPlace(view).elapsedNs() > 0);
                                }
                                assertTrue(
                                        operator.lastResult().timeline().tracks().size() > 1,
                                        "tracks");
                            }
                        }
                    });
        }
    }

    @Test
    void wrongDescriptionsAreRefused() {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(1)) {
            Matrix b = Matrix.allocate(arena, DType.FP32, 4, 5);
            world.run(
                    fabric -> {
                        Shards rows = Shards.of(3);
                        refused(
                                "B number 0 of rank 0 is [4, 5] fp32: expected [6, 1 or more]",
                                MatmulReduceScatter.on(fabric)
                                        .a(rows, Shards.of(6), DType.FP32)
                                        .b(b));
                    });
        }
        try (World world = World.threads(1)) {
            world.run(
                    fabric ->
                            refused(
                                    "an operator needs a(...) and at least one b(...)",
                                    MatmulAllReduce.on(fabric)));
        }
        try (Arena arena = Arena.ofShared();
                World world = World.threads(1)) {
            Matrix b = Matrix.allocate(arena, DType.FP32, 4, 5);
            world.run(
                    fabric ->
                            refused(
                                    "algorithm chain in order by-rank: it sums in order whole",
                                    MatmulAllReduce.on(fabric)
                                            .a(Shards.of(3), Shards.of(4), DType.FP32)
                                            .b(b)
                                            .algorithm(Reduction.CHAIN)
                                            .order(Order.BY_RANK)));
        }
        assertEquals(
                List.of(
                        "auto",
                        "direct",
                        "chain",
                        "hierarchical",
                        "ring",
                        "mesh-push",
                        "sequential"),
                Arrays.stream(Reduction.values()).map(Reduction::label).toList());
    }

    private static void refused(String message, MatmulReduceBuilder<?> builder) {
        var e = assertThrows(IllegalArgumentException.class, builder::prepare);
        assertEquals(message, e.getMessage());
    }
}
