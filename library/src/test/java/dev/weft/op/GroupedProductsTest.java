package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.World;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.plan.group.Experts;
import dev.weft.plan.group.Experts.Overflow;
import dev.weft.plan.group.RowGroups;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import dev.weft.tensor.Routes;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Products of the rows that experts get, and their sums. */
class GroupedProductsTest {

    private static final int K = 21;
    private static final int HIDDEN = 33;
    private static final int N = 19;

    /** How rows choose their experts. */
    private enum Choice {
        UNIFORM,
        SKEWED,
        ALL_TO_ONE,
        SOME_HAVE_NONE
    }

    /** A layer: gate and up to hidden columns, joined by SwiGLU, then down, for each expert. */
    private record Layer(Experts experts, DType type, List<Matrix> gates, List<Matrix> downs) {

        static Layer random(Arena arena, Random random, Experts experts, DType type) {
            List<Matrix> gates = new ArrayList<>();
            List<Matrix> downs = new ArrayList<>();
            for (int e = 0; e < experts.count(); e++) {
                gates.add(matrix(arena, random, type, K, HIDDEN));
                gates.add(matrix(arena, random, type, K, HIDDEN));
                downs.add(matrix(arena, random, type, HIDDEN, N));
            }
            return new Layer(experts, type, gates, downs);
        }

        GroupedAllGatherMatmul up(Fabric fabric, Shards rows, Algorithm algorithm) {
            AllGatherMatmulBuilder builder =
                    AllGatherMatmul.on(fabric)
                            .a(rows, type)
                            .epilogue(Epilogue.none().swiglu())
                            .output(type)
                            .algorithm(algorithm)
                            .computeWorkers(2);
            int first = experts.first(fabric.rank());
            for (int e = first; e < first + experts.count(fabric.rank()); e++) {
                builder.b(gates.get(2 * e)).b(gates.get(2 * e + 1));
            }
            return GroupedAllGatherMatmul.prepare(builder, experts);
        }

        GroupedMatmulReduceScatter down(Fabric fabric, Shards rows, Reduction algorithm) {
            MatmulReduceBuilder<MatmulReduceScatter> builder =
                    MatmulReduceScatter.on(fabric)
                            .a(rows, experts.ofRanks(), type)
                            .algorithm(algorithm)
                            .computeWorkers(2);
            int first = experts.first(fabric.rank());
            for (int e = first; e < first + experts.count(fabric.rank()); e++) {
                builder.b(downs.get(e));
            }
            return GroupedMatmulReduceScatter.prepare(builder, experts);
        }
    }

    private static Matrix matrix(Arena arena, Random random, DType type, long rows, long cols) {
        Matrix matrix = Matrix.allocate(arena, type, rows, cols);
        matrix.fill(() -> random.nextGaussian() / Math.sqrt(rows));
        return matrix;
    }

    private static Routes routes(Random random, long rows, Experts experts, Choice choice) {
        Routes routes = new Routes(rows, experts.perRow());
        for (int row = 0; row < rows; row++) {
            List<Integer> chosen = new ArrayList<>();
            while (chosen.size() < experts.perRow()) {
                double u = random.nextDouble();
                int expert = (int) ((choice == Choice.SKEWED ? u * u * u : u) * experts.count());
                if (choice == Choice.ALL_TO_ONE && chosen.isEmpty()) {
                    expert = experts.count() / 2;
                }
                if (!chosen.contains(expert)) {
                    chosen.add(expert);
                }
            }
            for (int i = 0; i < chosen.size(); i++) {
                boolean none = choice == Choice.SOME_HAVE_NONE && random.nextInt(3) == 0;
                routes.set(row, i, none ? Routes.NONE : chosen.get(i), random.nextFloat());
            }
        }
        return routes;
    }

    private static Routes of(Routes all, long first, long rows) {
        long entry = 8L * all.perRow();
        return Routes.of(all.data().asSlice(first * entry, rows * entry), rows, all.perRow());
    }

    /** The rows of every expert's products, and their sums, by operators that know no groups. */
    private record Expected(float[][][] hidden, float[][] sums) {

        static Expected of(Layer layer, Matrix a, Routes routes) {
            int experts = layer.experts().count();
            float[][][] hidden = new float[experts][][];
            float[][] sums = new float[(int) a.rows()][N];
            Ranks.run(
                    1,
                    fabric -> {
                        Shards rows = Shards.of(a.rows());
                        for (int e = 0; e < experts; e++) {
                            try (AllGatherMatmul up =
                                            AllGatherMatmul.on(fabric)
                                                    .a(rows, layer.type())
                                                    .b(layer.gates().get(2 * e))
                                                    .b(layer.gates().get(2 * e + 1))
                                                    .epilogue(Epilogue.none().swiglu())
                                                    .output(layer.type())
                                                    .algorithm(Algorithm.SEQUENTIAL)
                                                    .prepare();
                                    AllGatherMatmul down =
                                            AllGatherMatmul.on(fabric)
                                                    .a(rows, layer.type())
                                                    .b(layer.downs().get(e))
                                                    .algorithm(Algorithm.SEQUENTIAL)
                                                    .prepare()) {
                                Matrix h = up.call(a).product();
                                hidden[e] = h.toArrays();
                                add(e, down.call(h).product().toArrays(), routes, sums);
                            }
                        }
                    });
            return new Expected(hidden, sums);
        }

        private static void add(int expert, float[][] product, Routes routes, float[][] sums) {
            for (int row = 0; row < sums.length; row++) {
                for (int i = 0; i < routes.perRow(); i++) {
                    if (routes.expert(row, i) == expert) {
                        for (int col = 0; col < N; col++) {
                            sums[row][col] =
                                    Math.fma(
                                            routes.weight(row, i),
                                            product[row][col],
                                            sums[row][col]);
                        }
                    }
                }
            }
        }
    }

    private static Shards random(Random random, int ranks, int most) {
        long[] parts = new long[ranks];
        Arrays.setAll(parts, r -> random.nextInt(4) == 0 ? 0 : random.nextInt(most + 1));
        return Shards.of(parts);
    }

    private static Shards spread(Random random, int ranks, int experts) {
        long[] parts = new long[ranks];
        for (int e = 0; e < experts; e++) {
            parts[random.nextInt(ranks)]++;
        }
        return Shards.of(parts);
    }

    @ParameterizedTest
    @CsvSource({
        "direct, chain",
        "mesh-pull, chain",
        "mesh-push, auto",
        "ring, auto",
        "sequential, chain",
        "auto, auto"
    })
    void bitsAreThoseOfProductsOfAllRows(String gather, String reduction) {
        for (int seed = 0; seed < 4; seed++) {
            Random random = new Random(seed * 17L + gather.hashCode());
            int ranks = 1 + random.nextInt(4);
            int count = 1 + random.nextInt(9);
            int perRow = seed == 0 ? count : 1 + random.nextInt(Math.min(count, 3));
            Experts experts = Experts.of(spread(random, ranks, count), perRow);
            Shards most = random(random, ranks, 60);
            boolean apart = ranks > 1 && seed == 3 && !gather.equals("direct");
            Hosts hosts = apart ? Hosts.of(1, ranks - 1) : Hosts.one(ranks);
            DType type = random.nextBoolean() ? DType.FP32 : DType.BF16;
            try (Arena arena = Arena.ofShared()) {
                Layer layer = Layer.random(arena, random, experts, type);
                Matrix a = matrix(arena, random, type, most.totalRows(), K);
                List<Shards> calls = List.of(most, random(random, most), random(random, most));
                List<Routes> routes = new ArrayList<>();
                List<Expected> expected = new ArrayList<>();
                for (Shards shards : calls) {
                    Choice choice = Choice.values()[random.nextInt(Choice.values().length)];
                    Routes all = routes(random, shards.totalRows(), experts, choice);
                    routes.add(all);
                    expected.add(Expected.of(layer, a.rows(0, shards.totalRows()), all));
                }
                String what = "seed %d, rows %s, %s".formatted(seed, most, experts);
                Ranks.run(
                        ranks,
                        given -> {
                            Transport fabric =
                                    apart
                                            ? OnHosts.of(Transport.of(given), hosts)
                                            : Transport.of(given);
                            try (GroupedAllGatherMatmul up =
                                            layer.up(fabric, most, Algorithm.of(gather));
                                    GroupedMatmulReduceScatter down =
                                            layer.down(fabric, most, Reduction.of(reduction))) {
                                for (int i = 0; i < calls.size(); i++) {
                                    check(
                                            up,
                                            down,
                                            a,
                                            calls.get(i),
                                            routes.get(i),
                                            expected.get(i),
                                            what);
                                }
                            }
                        });
            }
        }
    }

    private static Shards random(Random random, Shards most) {
        long[] rows = new long[most.ranks()];
        Arrays.setAll(rows, r -> random.nextLong(most.rows(r) + 1));
        return Shards.of(rows);
    }

    private static void check(
            GroupedAllGatherMatmul up,
            GroupedMatmulReduceScatter down,
            Matrix a,
            Shards shards,
            Routes all,
            Expected expected,
            String what) {
        int rank = up.rank();
        long first = shards.firstRow(rank);
        long rows = shards.rows(rank);
        Matrix hidden = up.call(a.rows(first, rows), of(all, first, rows), shards).product();
        RowGroups groups = up.groups();
        assertEquals(groups.count(), hidden.rows(), what);
        int expert = up.experts().first(rank);
        for (int group = 0; group < groups.groups(); group++, expert++) {
            int e = expert;
            int[] named =
                    IntStream.range(0, (int) shards.totalRows())
                            .filter(row -> names(all, row, e))
                            .toArray();
            int from = groups.first(group);
            int[] given =
                    IntStream.range(from, from + groups.count(group)).map(groups::row).toArray();
            assertArrayEquals(named, given, what);
            for (int i = 0; i < given.length; i++) {
                float[] product = hidden.rows(from + i, 1).toArray();
                assertArrayEquals(expected.hidden()[e][given[i]], product, what);
            }
        }
        Matrix sums = down.call(hidden, groups).product();
        assertEquals(rows, sums.rows(), what);
        for (int row = 0; row < rows; row++) {
            float[] sum = sums.rows(row, 1).toArray();
            assertArrayEquals(expected.sums()[(int) first + row], sum, what);
        }
    }

    private static boolean names(Routes routes, int row, int expert) {
        return IntStream.range(0, routes.perRow()).anyMatch(i -> routes.expert(row, i) == expert);
    }

    /** Float64, over rows, with no operator at all. */
    @Test
    void sumsAreNearThoseInFloat64() {
        Random random = new Random(3);
        Experts experts = Experts.of(Shards.of(3, 2), 2);
        Shards rows = Shards.of(13, 29);
        try (Arena arena = Arena.ofShared()) {
            Layer layer = Layer.random(arena, random, experts, DType.FP32);
            Matrix a = matrix(arena, random, DType.FP32, rows.totalRows(), K);
            Routes all = routes(random, rows.totalRows(), experts, Choice.SKEWED);
            Ranks.run(
                    2,
                    fabric -> {
                        long first = rows.firstRow(fabric.rank());
                        long own = rows.rows(fabric.rank());
                        try (GroupedAllGatherMatmul up =
                                        layer.up(fabric, rows, Algorithm.MESH_PULL);
                                GroupedMatmulReduceScatter down =
                                        layer.down(fabric, rows, Reduction.CHAIN)) {
                            Matrix h = up.call(a.rows(first, own), of(all, first, own)).product();
                            Matrix c = down.call(h, up.groups()).product();
                            for (int row = 0; row < own; row++) {
                                double[] sum = float64(layer, a, all, (int) first + row);
                                for (int col = 0; col < N; col++) {
                                    assertEquals(sum[col], c.get(row, col), 1e-5);
                                }
                            }
                        }
                    });
        }
    }

    private static double[] float64(Layer layer, Matrix a, Routes routes, int row) {
        double[] sum = new double[N];
        for (int i = 0; i < routes.perRow(); i++) {
            int e = routes.expert(row, i);
            double[] gate = times(col -> a.get(row, col), layer.gates().get(2 * e));
            double[] up = times(col -> a.get(row, col), layer.gates().get(2 * e + 1));
            double[] hidden = new double[HIDDEN];
            Arrays.setAll(hidden, h -> gate[h] / (1 + Math.exp(-gate[h])) * up[h]);
            double[] product = times(h -> hidden[h], layer.downs().get(e));
            for (int col = 0; col < N; col++) {
                sum[col] += routes.weight(row, i) * product[col];
            }
        }
        return sum;
    }

    private static double[] times(IntFunction<? extends Number> row, Matrix b) {
        double[] product = new double[(int) b.cols()];
        for (int k = 0; k < b.rows(); k++) {
            for (int n = 0; n < product.length; n++) {
                product[n] += row.apply(k).doubleValue() * b.get(k, n);
            }
        }
        return product;
    }

    /** Every rank refuses the call with the same words, and the next one works. */
    @Test
    void tooManyRowsAreRefusedByAllRanks() {
        Random random = new Random(4);
        Experts some = Experts.of(Shards.of(2, 2), 1).withMostRows(10);
        assertRefused(
                some,
                1,
                "rank 0 gets 12 rows, most of them (12) for expert 1: expected at most 10 rows on a rank",
                random);
        Experts each = Experts.of(Shards.of(2, 2), 1).withMostOfEach(11, Overflow.REFUSE);
        assertRefused(each, 3, "expert 3 of rank 1 gets 12 rows: expected at most 11", random);
        Experts four = Experts.of(Shards.of(2, 2), 1);
        assertRefused(
                four, 4, "row 0 of rank 0 names expert 4: expected 0 to 3, or -1 for none", random);
    }

    private static void assertRefused(Experts experts, int expert, String why, Random random) {
        Shards rows = Shards.of(5, 7);
        ConcurrentHashMap<Integer, String> messages = new ConcurrentHashMap<>();
        try (Arena arena = Arena.ofShared()) {
            Layer layer = Layer.random(arena, random, experts, DType.FP32);
            Matrix a = matrix(arena, random, DType.FP32, 12, K);
            Ranks.run(
                    2,
                    fabric -> {
                        int own = (int) rows.rows(fabric.rank());
                        Matrix shard = a.rows(rows.firstRow(fabric.rank()), own);
                        Routes refused = new Routes(own, 1);
                        Routes right = new Routes(own, 1);
                        for (int row = 0; row < own; row++) {
                            refused.set(row, 0, expert, 1);
                            right.set(row, 0, row % 4, 1);
                        }
                        try (GroupedAllGatherMatmul up =
                                layer.up(fabric, rows, Algorithm.MESH_PULL)) {
                            messages.put(
                                    fabric.rank(),
                                    assertThrows(
                                                    IllegalArgumentException.class,
                                                    () -> up.call(shard, refused))
                                            .getMessage());
                            long products = up.call(shard, right).product().rows();
                            assertTrue(products > 0);
                            assertEquals(up.groups().count(), products);
                        }
                    });
        }
        assertEquals(List.of(why, why), List.of(messages.get(0), messages.get(1)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"DROP_LAST", "DROP_LIGHTEST"})
    void expertsLeaveOutWhatTheyDoNotTake(String rule) {
        Overflow overflow = Overflow.valueOf(rule);
        Experts experts = Experts.of(Shards.of(1, 1), 1).withMostOfEach(3, overflow);
        float[] weights = {.2f, .9f, .2f, .1f, .8f, .2f, .7f};
        Random random = new Random(6);
        try (Arena arena = Arena.ofShared()) {
            Layer layer = Layer.random(arena, random, experts, DType.FP32);
            Matrix a = matrix(arena, random, DType.FP32, 7, K);
            Ranks.run(
                    2,
                    fabric -> {
                        Shards rows = Shards.of(7, 0);
                        int own = (int) rows.rows(fabric.rank());
                        Routes routes = new Routes(own, 1);
                        for (int row = 0; row < own; row++) {
                            routes.set(row, 0, row == 6 ? 1 : 0, weights[row]);
                        }
                        try (GroupedAllGatherMatmul up =
                                layer.up(fabric, rows, Algorithm.MESH_PULL)) {
                            up.call(a.rows(rows.firstRow(fabric.rank()), own), routes);
                            RowGroups groups = up.groups();
                            int[] kept =
                                    IntStream.range(0, groups.count()).map(groups::row).toArray();
                            int[] ofFirst =
                                    overflow == Overflow.DROP_LAST
                                            ? new int[] {0, 1, 2}
                                            : new int[] {0, 1, 4};
                            assertArrayEquals(fabric.rank() == 0 ? ofFirst : new int[] {6}, kept);
                            assertEquals(3, up.dropped());
                            assertEquals(List.of(3, 1), List.of(up.rowsOf(0), up.rowsOf(1)));
                        }
                    });
        }
    }

    /** Each rank adds up what its own experts have; these sums are added in rank order. */
    @ParameterizedTest
    @ValueSource(strings = {"ring", "mesh-push", "sequential"})
    void sumsByRank(String reduction) {
        Random random = new Random(10);
        Experts experts = Experts.of(Shards.of(2, 0, 3), 3);
        Shards rows = Shards.of(11, 30, 0);
        try (Arena arena = Arena.ofShared()) {
            Layer layer = Layer.random(arena, random, experts, DType.FP32);
            Matrix a = matrix(arena, random, DType.FP32, rows.totalRows(), K);
            Routes all = routes(random, rows.totalRows(), experts, Choice.UNIFORM);
            List<Expected> ofRanks = new ArrayList<>();
            for (int rank : new int[] {0, 2}) {
                Routes own = new Routes(rows.totalRows(), 3);
                for (int row = 0; row < rows.totalRows(); row++) {
                    for (int i = 0; i < 3; i++) {
                        int e = all.expert(row, i);
                        if (e >= 2 == (rank == 2)) {
                            own.set(row, i, e, all.weight(row, i));
                        }
                    }
                }
                ofRanks.add(Expected.of(layer, a, own));
            }
            Ranks.run(
                    3,
                    fabric -> {
                        long first = rows.firstRow(fabric.rank());
                        long own = rows.rows(fabric.rank());
                        try (GroupedAllGatherMatmul up =
                                        layer.up(fabric, rows, Algorithm.MESH_PULL);
                                GroupedMatmulReduceScatter down =
                                        layer.down(fabric, rows, Reduction.of(reduction))) {
                            Matrix h = up.call(a.rows(first, own), of(all, first, own)).product();
                            Matrix c = down.call(h, up.groups()).product();
                            for (int row = 0; row < own; row++) {
                                for (int col = 0; col < N; col++) {
                                    int of = (int) first + row;
                                    float sum =
                                            ofRanks.get(0).sums()[of][col]
                                                    + ofRanks.get(1).sums()[of][col];
                                    assertEquals(sum, c.get(row, col));
                                }
                            }
                        }
                    });
        }
    }

    /** A bias is that of all experts; an operator without groups has it, too. */
    @Test
    void expertsShareABias() {
        Random random = new Random(11);
        Experts experts = Experts.of(Shards.of(3), 2);
        Shards rows = Shards.of(17);
        try (Arena arena = Arena.ofShared()) {
            Layer layer = Layer.random(arena, random, experts, DType.FP32);
            Matrix a = matrix(arena, random, DType.FP32, 17, K);
            Epilogue bias =
                    Epilogue.none().bias(matrix(arena, random, DType.FP32, 1, HIDDEN)).relu();
            Routes all = routes(random, 17, experts, Choice.UNIFORM);
            Ranks.run(
                    1,
                    fabric -> {
                        AllGatherMatmulBuilder builder =
                                AllGatherMatmul.on(fabric).a(rows, DType.FP32).epilogue(bias);
                        layer.gates().subList(0, 3).forEach(builder::b);
                        try (GroupedAllGatherMatmul grouped =
                                GroupedAllGatherMatmul.prepare(builder, experts)) {
                            Matrix product = grouped.call(a, all).product();
                            for (int e = 0; e < 3; e++) {
                                try (AllGatherMatmul plain =
                                        AllGatherMatmul.on(fabric)
                                                .a(rows, DType.FP32)
                                                .b(layer.gates().get(e))
                                                .epilogue(bias)
                                                .prepare()) {
                                    Matrix expected = plain.call(a).product();
                                    RowGroups groups = grouped.groups();
                                    int from = groups.first(e);
                                    assertTrue(groups.count(e) > 0);
                                    for (int i = from; i < from + groups.count(e); i++) {
                                        assertArrayEquals(
                                                expected.rows(groups.row(i), 1).toArray(),
                                                product.rows(i, 1).toArray());
                                    }
                                }
                            }
                        }
                    });
        }
    }

    @Test
    void whatExpertsCannotHaveIsRefused() {
        Random random = new Random(12);
        Experts experts = Experts.of(Shards.of(2), 1);
        Shards rows = Shards.of(5);
        try (Arena arena = Arena.ofShared()) {
            Layer layer = Layer.random(arena, random, experts, DType.FP32);
            Matrix residual = matrix(arena, random, DType.FP32, 5, HIDDEN);
            assertRefusedAlone(
                    "algorithm direct with experts",
                    fabric -> layer.down(fabric, rows, Reduction.DIRECT));
            assertRefusedAlone(
                    "parts of K of 3 for experts 2",
                    fabric ->
                            GroupedMatmulReduceScatter.prepare(
                                    MatmulReduceScatter.on(fabric)
                                            .a(rows, Shards.of(3), DType.FP32)
                                            .b(layer.downs().get(0))
                                            .b(layer.downs().get(1)),
                                    experts));
            assertRefusedAlone(
                    "order by-rank-bf16 with experts",
                    fabric ->
                            GroupedMatmulReduceScatter.prepare(
                                    MatmulReduceScatter.on(fabric)
                                            .a(rows, Shards.of(2), DType.FP32)
                                            .order(Reduction.Order.BY_RANK_BF16)
                                            .b(layer.downs().get(0))
                                            .b(layer.downs().get(1)),
                                    experts));
            assertRefusedAlone(
                    "expected no residual",
                    fabric ->
                            GroupedAllGatherMatmul.prepare(
                                    AllGatherMatmul.on(fabric)
                                            .a(rows, DType.FP32)
                                            .epilogue(Epilogue.none().residual(residual))
                                            .b(layer.gates().get(0))
                                            .b(layer.gates().get(1)),
                                    experts));
            assertRefusedAlone(
                    "1 Bs for the 2 experts of rank 0: expected 1 for each",
                    fabric ->
                            GroupedAllGatherMatmul.prepare(
                                    AllGatherMatmul.on(fabric)
                                            .a(rows, DType.FP32)
                                            .b(layer.gates().get(0)),
                                    experts));
        }
    }

    private static void assertRefusedAlone(String why, Consumer<Fabric> prepares) {
        try (World world = World.threads(1)) {
            RuntimeException refused =
                    assertThrows(RuntimeException.class, () -> world.run(prepares::accept));
            assertTrue(refused.getMessage().contains(why), refused.getMessage());
        }
    }

    /** A rank that was refused alone has told the others nothing, and calls again. */
    @Test
    void aWrongShardIsRefusedByItsRankAlone() {
        Random random = new Random(13);
        Experts experts = Experts.of(Shards.of(1, 1), 1);
        Shards rows = Shards.of(5, 7);
        try (Arena arena = Arena.ofShared()) {
            Layer layer = Layer.random(arena, random, experts, DType.FP32);
            Matrix a = matrix(arena, random, DType.FP32, 12, K);
            Routes all = routes(random, 12, experts, Choice.UNIFORM);
            Ranks.run(
                    2,
                    fabric -> {
                        long first = rows.firstRow(fabric.rank());
                        long own = rows.rows(fabric.rank());
                        try (GroupedAllGatherMatmul up =
                                layer.up(fabric, rows, Algorithm.MESH_PULL)) {
                            if (fabric.rank() == 1) {
                                assertThrows(
                                        IllegalArgumentException.class,
                                        () -> up.call(a, of(all, first, own)));
                            }
                            up.call(a.rows(first, own), of(all, first, own));
                            assertEquals(12, up.rowsOf(0) + up.rowsOf(1));
                        }
                    });
        }
    }

    /** Those that wait for a rank that throws between the halves are told who it was. */
    @Test
    void aRankThatThrowsEndsTheOthersByName() {
        Random random = new Random(14);
        Experts experts = Experts.of(Shards.of(1, 2, 1), 2);
        Shards rows = Shards.of(9, 8, 7);
        try (Arena arena = Arena.ofShared()) {
            Layer layer = Layer.random(arena, random, experts, DType.FP32);
            Matrix a = matrix(arena, random, DType.FP32, rows.totalRows(), K);
            Routes all = routes(random, rows.totalRows(), experts, Choice.UNIFORM);
            ConcurrentHashMap<Integer, String> told = new ConcurrentHashMap<>();
            try (World world = World.threads(3)) {
                assertThrows(
                        IllegalStateException.class,
                        () ->
                                world.run(
                                        fabric -> {
                                            FabricException error =
                                                    fails(fabric, layer, rows, a, all);
                                            told.put(fabric.rank(), error.getMessage());
                                        }));
            }
            assertEquals(Set.of(0, 2), told.keySet());
            told.forEach((rank, message) -> assertTrue(message.contains("rank 1"), message));
        }
    }

    private static FabricException fails(
            Fabric fabric, Layer layer, Shards rows, Matrix a, Routes all) {
        long first = rows.firstRow(fabric.rank());
        long own = rows.rows(fabric.rank());
        try (GroupedAllGatherMatmul up = layer.up(fabric, rows, Algorithm.MESH_PULL);
                GroupedMatmulReduceScatter down = layer.down(fabric, rows, Reduction.CHAIN)) {
            Matrix shard = a.rows(first, own);
            down.call(up.call(shard, of(all, first, own)).product(), up.groups());
            Matrix hidden = up.call(shard, of(all, first, own)).product();
            if (fabric.rank() == 1) {
                throw new IllegalStateException("gone");
            }
            return assertThrows(
                    FabricException.class,
                    () -> {
                        down.call(hidden, up.groups());
                        // The first in the chain may get its rows' sums from nobody else.
                        down.call(hidden, up.groups());
                    });
        }
    }

    /** The rows of experts with weights in blocks have the bits of products of these. */
    @Test
    void weightsMayBeInBlocks() {
        Experts experts = Experts.of(Shards.of(2, 2), 2);
        Shards rows = Shards.of(9, 14);
        Random random = new Random(8);
        try (Arena arena = Arena.ofShared()) {
            Matrix a = matrix(arena, random, DType.FP32, rows.totalRows(), 64);
            List<QuantizedMatrix> bs = new ArrayList<>();
            for (int e = 0; e < experts.count(); e++) {
                Matrix b = matrix(arena, random, DType.FP32, 40, 64);
                bs.add(QuantizedMatrix.ofB(arena, b, true, BlockType.Q8_0));
            }
            Routes all = routes(random, rows.totalRows(), experts, Choice.UNIFORM);
            Ranks.run(
                    2,
                    fabric -> {
                        int rank = fabric.rank();
                        long first = rows.firstRow(rank);
                        long own = rows.rows(rank);
                        AllGatherMatmulBuilder builder =
                                AllGatherMatmul.on(fabric).a(rows, DType.FP32);
                        List<Weights> weights = new ArrayList<>();
                        for (int e = 0; e < 2; e++) {
                            QuantizedMatrix b = bs.get(experts.first(rank) + e);
                            weights.add(Weights.pack(fabric, b, DType.FP32, "auto"));
                        }
                        weights.forEach(builder::b);
                        try (GroupedAllGatherMatmul grouped =
                                        GroupedAllGatherMatmul.prepare(builder, experts);
                                AllGatherMatmul whole =
                                        AllGatherMatmul.on(fabric)
                                                .a(rows, DType.FP32)
                                                .b(weights.get(0))
                                                .b(weights.get(1))
                                                .prepare()) {
                            Matrix shard = a.rows(first, own);
                            Matrix product = grouped.call(shard, of(all, first, own)).product();
                            Result<Matrix> expected = whole.call(shard);
                            RowGroups groups = grouped.groups();
                            assertTrue(groups.count() > 0);
                            for (int group = 0; group < 2; group++) {
                                int from = groups.first(group);
                                for (int i = from; i < from + groups.count(group); i++) {
                                    assertArrayEquals(
                                            expected.product(group)
                                                    .rows(groups.row(i), 1)
                                                    .toArray(),
                                            product.rows(i, 1).toArray());
                                }
                            }
                        } finally {
                            weights.forEach(Weights::close);
                        }
                    });
        }
    }

    /** Rows in 8 bits with scales are widened as they are collected. */
    @Test
    void rowsMayHaveScales() {
        Experts experts = Experts.of(Shards.of(1, 2), 2);
        Shards rows = Shards.of(9, 14);
        Random random = new Random(9);
        try (Arena arena = Arena.ofShared()) {
            Matrix wide = matrix(arena, random, DType.FP32, rows.totalRows(), 256);
            Matrix a = ScaledMatrix.rowsOf(arena, wide, DType.E4M3, Scaling.BLOCK);
            List<ScaledMatrix> bs = new ArrayList<>();
            for (int e = 0; e < experts.count(); e++) {
                Matrix b = matrix(arena, random, DType.FP32, 256, 40);
                bs.add(ScaledMatrix.ofB(arena, b, false, DType.E4M3, Scaling.BLOCK));
            }
            Routes all = routes(random, rows.totalRows(), experts, Choice.UNIFORM);
            Ranks.run(2, fabric -> checkScaled(fabric, rows, experts, a, bs, all));
        }
    }

    private static void checkScaled(
            Fabric fabric,
            Shards rows,
            Experts experts,
            Matrix a,
            List<ScaledMatrix> bs,
            Routes all) {
        int rank = fabric.rank();
        long first = rows.firstRow(rank);
        long own = rows.rows(rank);
        AllGatherMatmulBuilder builder =
                AllGatherMatmul.on(fabric).scaledA(rows, DType.E4M3, Scaling.BLOCK);
        AllGatherMatmulBuilder plain =
                AllGatherMatmul.on(fabric).scaledA(rows, DType.E4M3, Scaling.BLOCK);
        for (ScaledMatrix b : bs) {
            plain.b(b, false);
        }
        for (int e = 0; e < experts.count(rank); e++) {
            builder.b(bs.get(experts.first(rank) + e), false);
        }
        try (GroupedAllGatherMatmul grouped = GroupedAllGatherMatmul.prepare(builder, experts);
                AllGatherMatmul whole = plain.prepare()) {
            Matrix shard = a.rows(first, own);
            Matrix product = grouped.call(shard, of(all, first, own)).product();
            Result<Matrix> expected = whole.call(shard);
            RowGroups groups = grouped.groups();
            assertTrue(groups.count() > 0);
            for (int group = 0; group < groups.groups(); group++) {
                int expert = experts.first(rank) + group;
                int from = groups.first(group);
                for (int i = from; i < from + groups.count(group); i++) {
                    float[] row = expected.product(expert).rows(groups.row(i), 1).toArray();
                    assertArrayEquals(row, product.rows(i, 1).toArray());
                }
            }
        }
    }
}
