package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * One rank that MPI has started, for {@link MpiRanksIT}: as many cases as one start can bear. It
 * ends with 0 and a line {@code right N cases}.
 */
final class MpiRank {

    /** A call's buffers serve the next but one: three contents show what stayed from there. */
    private static final int CONTENTS = 3;

    private static final int CALLS = 4;
    private static final long[] ROWS = {37, 0, 5, 64, 1, 0, 20, 9};
    private static final long[] PARTS = {9, 20, 0, 33, 1, 0, 12, 5};

    private final Fabric fabric;
    private int right;

    private MpiRank(Fabric fabric) {
        this.fabric = fabric;
    }

    public static void main(String[] args) {
        try (World world = World.mpi(Duration.ofSeconds(60))) {
            world.run(
                    fabric -> {
                        int cases = new MpiRank(fabric).everyCase(true);
                        if (fabric.size() == 4) {
                            try (Fabric half = fabric.split(2)) {
                                cases += new MpiRank(half).everyCase(false);
                            }
                        }
                        System.out.println("right " + cases + " cases on hosts " + fabric.hosts());
                    });
        }
    }

    /** How an operator is cut and what it keeps. */
    private record Cut(String name, boolean keeps, UnaryOperator<AllGatherMatmulBuilder> apply) {}

    private static final List<Cut> CUTS =
            List.of(
                    new Cut("rows as Weft likes", true, b -> b.keepGathered()),
                    new Cut("7 rows", true, b -> b.chunkRows(7).keepGathered()),
                    new Cut("columns", true, b -> b.chunkRows(7).chunkCols(24).keepGathered()),
                    new Cut("3 splits, 2 lanes", false, b -> b.splitsPerRank(3).commWorkers(2)),
                    new Cut(
                            "summaries",
                            true,
                            b -> b.chunkRows(5).chunkCols(30).waitForSummary().keepGathered()));

    private static List<Shards> shards(int ranks) {
        long[] uneven = new long[ranks];
        long[] last = new long[ranks];
        for (int r = 0; r < ranks; r++) {
            uneven[r] = ROWS[r];
        }
        last[ranks - 1] = 19;
        return List.of(
                Shards.of(uneven),
                Shards.even(16L * ranks, ranks),
                Shards.of(last),
                Shards.even(0, ranks));
    }

    /** All algorithms with all cuts; shards and types take turns. */
    private int everyCase(boolean all) {
        List<Shards> shards = shards(fabric.size());
        int turn = 0;
        for (Algorithm algorithm : Algorithm.values()) {
            if (algorithm == Algorithm.DIRECT && !fabric.sharesMemory()) {
                continue;
            }
            // Many ranks take their time on few cores: all cuts, but not with every algorithm.
            // Auto takes its time to choose one of the others.
            boolean one = !all || algorithm == Algorithm.AUTO;
            int cuts = one ? 1 : fabric.size() > 3 ? 2 : CUTS.size();
            for (int i = 0; i < cuts; i++) {
                Cut cut = CUTS.get((algorithm.ordinal() * cuts + i) % CUTS.size());
                check(algorithm, cut, shards.get(turn % shards.size()), turn);
                turn++;
            }
            if (all) {
                gathers(algorithm, shards.getFirst(), DType.values()[turn % 3]);
            }
        }
        for (Reduction reduction : Reduction.values()) {
            // Whole sums go round in an all-reduce alone.
            if (all && (reduction != Reduction.DIRECT || fabric.sharesMemory())) {
                sums(reduction, MatmulReduceScatter.on(fabric), shards.getFirst(), false);
                sums(reduction, MatmulAllReduce.on(fabric), shards.getFirst(), true);
            }
        }
        weights(shards);
        Cut pingPong = new Cut("ping-pong", false, b -> b.pingPong().chunkRows(6));
        for (Shards each : shards) {
            check(Algorithm.RING, pingPong, each, turn++);
        }
        return right;
    }

    private void check(Algorithm algorithm, Cut cut, Shards shards, int turn) {
        DType[] types = DType.values();
        DType aType = types[turn % 3];
        DType out = types[(turn + turn / 3) % 3];
        boolean transposed = turn % 2 == 1;
        try (Arena arena = Arena.ofShared()) {
            Problem first =
                    Problem.create(
                            arena, shards, 33, 20, aType, types[turn % 2], out, transposed, turn);
            List<Problem> contents = new ArrayList<>(List.of(first));
            for (int i = 1; i < CONTENTS; i++) {
                contents.add(withOtherA(first, arena, i));
            }
            AllGatherMatmulBuilder builder =
                    AllGatherMatmul.on(fabric)
                            .a(shards, aType)
                            .b(first.b(), transposed)
                            .output(out)
                            .algorithm(algorithm);
            String what = algorithm.label() + ", " + cut.name() + ", shards " + shards;
            try (AllGatherMatmul op = cut.apply().apply(builder).prepare()) {
                for (int call = 0; call < CALLS; call++) {
                    Problem problem = contents.get(call % CONTENTS);
                    if (call == 2) {
                        op.callInPlace(View.COMPUTE_ONLY);
                        op.callInPlace(View.COMM_ONLY);
                    }
                    check(problem, op.call(problem.shard(fabric.rank())), cut, what + ", " + call);
                    Shards fewer = fewer(shards, call);
                    Problem part = problem.first(fewer);
                    check(
                            part,
                            op.call(part.shard(fabric.rank()), fewer),
                            cut,
                            what + ", " + call + " of " + fewer);
                }
            }
        }
        right++;
    }

    /** A half, a row or a quarter of each shard, or nothing of some. */
    private static Shards fewer(Shards shards, int call) {
        long[] rows = new long[shards.ranks()];
        for (int r = 0; r < rows.length; r++) {
            long most = shards.rows(r);
            rows[r] =
                    switch (call % 4) {
                        case 0 -> most / 2;
                        case 1 -> Math.min(1, most);
                        case 2 -> r % 2 == 0 ? 0 : most;
                        default -> most / 4;
                    };
        }
        return Shards.of(rows);
    }

    private static Problem withOtherA(Problem problem, Arena arena, int number) {
        Matrix a =
                Matrix.allocate(arena, problem.a().dtype(), problem.a().rows(), problem.a().cols());
        new NormalData(number, 77).fill(a);
        Matrix unfused =
                Problem.unfused(
                        Gemms.auto(a.dtype(), problem.b().dtype()),
                        arena,
                        a,
                        problem.b(),
                        problem.transposed(),
                        problem.out());
        return new Problem(
                problem.shards(), a, problem.b(), problem.transposed(), problem.out(), unfused);
    }

    private static void check(Problem problem, Result<Matrix> result, Cut cut, String what) {
        long row = problem.unfused().firstDifferentRow(result.product());
        require(row < 0, what + ": product row " + row);
        require(
                !cut.keeps() || problem.a().bitwiseEquals(result.gathered().orElseThrow()),
                what + ": gathered A");
    }

    /** Below and beside each other. */
    private void gathers(Algorithm algorithm, Shards shards, DType type) {
        int rank = fabric.rank();
        int cols = 33;
        try (Arena arena = Arena.ofShared();
                AllGather<Matrix> rows = AllGather.rows(fabric, shards, cols, type, algorithm);
                AllGather<Matrix> columns =
                        AllGather.columns(fabric, 11, cols, type, algorithm, 4)) {
            for (int call = 0; call < CONTENTS; call++) {
                Matrix below = Matrix.allocate(arena, type, shards.totalRows(), cols);
                new NormalData(call, 1).fill(below);
                Matrix own = below.rows(shards.firstRow(rank), shards.rows(rank));
                require(below.bitwiseEquals(rows.call(own)), algorithm + ": rows, " + call);
                Matrix stacked = Matrix.allocate(arena, type, 11L * fabric.size(), cols);
                new NormalData(call, 2).fill(stacked);
                Matrix beside = Matrix.allocate(arena, type, 11, (long) cols * fabric.size());
                for (int r = 0; r < fabric.size(); r++) {
                    beside.copyBlock(stacked, 11L * r, 0, 0, (long) cols * r, 11, cols);
                }
                require(
                        beside.bitwiseEquals(columns.call(stacked.rows(11L * rank, 11))),
                        algorithm + ": columns, " + call);
            }
        }
        right += 2;
    }

    /** One packed B for two operators, before and after it is replaced. */
    private void weights(List<Shards> shards) {
        try (Arena arena = Arena.ofShared()) {
            List<Problem> problems = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                // The first two have one B, the last two another.
                Problem problem =
                        Problem.create(
                                arena,
                                shards.get(i % 2),
                                33,
                                20,
                                DType.BF16,
                                DType.BF16,
                                DType.FP32,
                                true,
                                i / 2);
                problems.add(withOtherA(problem, arena, i));
            }
            Cut cut = new Cut("weights", false, b -> b);
            Matrix b = problems.getFirst().b();
            try (Weights weights = Weights.pack(fabric, b, true, DType.BF16, "auto");
                    AllGatherMatmul one = of(weights, shards.get(0), Algorithm.MESH_PULL);
                    AllGatherMatmul two = of(weights, shards.get(1), Algorithm.RING)) {
                for (int i = 0; i < 4; i++) {
                    if (i == 2) {
                        weights.replace(problems.get(2).b());
                    }
                    Problem problem = problems.get(i);
                    AllGatherMatmul op = i % 2 == 0 ? one : two;
                    check(problem, op.call(problem.shard(fabric.rank())), cut, "weights, " + i);
                }
            }
        }
        right++;
    }

    private AllGatherMatmul of(Weights weights, Shards shards, Algorithm algorithm) {
        return AllGatherMatmul.on(fabric)
                .a(shards, DType.BF16)
                .b(weights)
                .output(DType.FP32)
                .algorithm(algorithm)
                .prepare();
    }

    /** Of small integers, so that every order of summation has the same bits. */
    private void sums(
            Reduction reduction,
            MatmulReduceBuilder<? extends Operator<Matrix>> builder,
            Shards rows,
            boolean all) {
        int rank = fabric.rank();
        Shards kParts = Shards.of(Arrays.copyOf(PARTS, fabric.size()));
        long k = kParts.totalRows();
        long n = 30;
        try (Arena arena = Arena.ofShared()) {
            Matrix b = Matrix.allocate(arena, DType.FP16, k, n);
            fill(b, 1);
            try (Operator<Matrix> op =
                    builder.a(rows, kParts, DType.FP16)
                            .b(b.rows(kParts.firstRow(rank), kParts.rows(rank)))
                            .algorithm(reduction)
                            .chunkRows(7)
                            .output(DType.FP32)
                            .prepare()) {
                for (int call = 0; call < CALLS; call++) {
                    Matrix a = Matrix.allocate(arena, DType.FP16, rows.totalRows(), k);
                    fill(a, call);
                    Matrix whole =
                            Problem.unfused(Gemms.portable(), arena, a, b, false, DType.FP32);
                    if (call == 2) {
                        op.callInPlace(View.COMPUTE_ONLY);
                        op.callInPlace(View.COMM_ONLY);
                    }
                    Matrix own = all ? whole : whole.rows(rows.firstRow(rank), rows.rows(rank));
                    Matrix part = a.block(0, a.rows(), kParts.firstRow(rank), kParts.rows(rank));
                    long row = own.firstDifferentRow(op.call(part).product());
                    require(row < 0, reduction.label() + ", all " + all + ": row " + row);
                    Shards fewer = fewer(rows, call);
                    Matrix top = part.rows(0, fewer.totalRows());
                    Matrix some = whole.rows(0, fewer.totalRows());
                    own = all ? some : some.rows(fewer.firstRow(rank), fewer.rows(rank));
                    row = own.firstDifferentRow(op.call(top, fewer).product());
                    require(
                            row < 0,
                            "%s, all %s, of %s: row %d"
                                    .formatted(reduction.label(), all, fewer, row));
                }
            }
        }
        right++;
    }

    private static void fill(Matrix matrix, int seed) {
        for (long row = 0; row < matrix.rows(); row++) {
            for (long col = 0; col < matrix.cols(); col++) {
                matrix.set(row, col, (row * 7 + col * 3 + seed) % 11 - 5);
            }
        }
    }

    private static void require(boolean condition, String otherwise) {
        if (!condition) {
            throw new IllegalStateException("wrong: " + otherwise);
        }
    }
}
