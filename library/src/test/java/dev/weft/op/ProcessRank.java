package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.World;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;

/**
 * One rank in a process of its own, for {@link ProcessesIT} and {@link MpiFailureIT}. It ends with
 * 0, with 3 and the lines {@code report REPORT} and {@code ended CLASS PEER MESSAGE} if a peer gave
 * it cause, or with 1.
 */
final class ProcessRank {

    static final int ENDED_BY_A_PEER = 3;

    private ProcessRank() {}

    public static void main(String[] args) {
        int code = 0;
        try (World world = world();
                Arena arena = Arena.ofShared()) {
            world.run(fabric -> run(fabric, arena, args));
        } catch (FabricException e) {
            code = ENDED_BY_A_PEER;
        }
        System.exit(code);
    }

    private static World world() {
        long mpiDeadlineMs = Long.getLong("weft.test.deadline.ms", 60_000);
        return MpiEnvironment.current().launched()
                ? World.mpi(Duration.ofMillis(mpiDeadlineMs))
                : World.joined();
    }

    private static void run(Fabric fabric, Arena arena, String[] args) {
        try {
            switch (args[0]) {
                case "all" -> everyAlgorithm(fabric, arena);
                case "types" -> everyTypeAndLayout(fabric, arena);
                case "endless" -> endless(fabric, arena, Algorithm.of(args[1]), -1);
                case "throw" -> endless(fabric, arena, Algorithm.RING, Integer.parseInt(args[1]));
                case "hold" -> hold(fabric, arena, Integer.parseInt(args[1]));
                case "direct" -> operator(fabric, endlessProblem(fabric, arena), Algorithm.DIRECT);
                default -> throw new IllegalArgumentException(args[0]);
            }
        } catch (FabricException e) {
            // Told at once: a launcher may end all ranks when the first one has ended.
            String kind = e.getClass().getSimpleName();
            e.report().ifPresent(known -> System.out.println("report " + known));
            System.out.println("ended " + kind + " " + e.peer() + " " + e.getMessage());
            throw e;
        }
    }

    /** Uneven and empty shards, several shapes, every algorithm, each result bit for bit. */
    private static void everyAlgorithm(Fabric fabric, Arena arena) {
        long[][] cuts = {{37, 0, 5, 64}, {0, 0, 0, 19}, {16, 16, 16, 16}, {0, 0, 0, 0}};
        for (Algorithm algorithm : Algorithm.values()) {
            for (long[] rows : cuts) {
                Problem problem = problem(arena, Shards.of(rows), algorithm.ordinal());
                try (AllGatherMatmul op = operator(fabric, problem, algorithm)) {
                    for (int call = 0; call < 4; call++) {
                        check(problem, op.call(problem.shard(fabric.rank())), algorithm);
                    }
                }
            }
            System.out.println("right " + algorithm.label());
        }
    }

    /** Every algorithm, dtype and layout of B, odd shapes, uneven and empty shards. */
    private static void everyTypeAndLayout(Fabric fabric, Arena arena) {
        Random random = new Random(fabric.size());
        for (Algorithm algorithm : Algorithm.values()) {
            for (DType type : DType.UNSCALED) {
                for (boolean transposed : new boolean[] {false, true}) {
                    long[] rows =
                            random.longs(fabric.size(), 0, 40)
                                    .map(r -> r % 4 == 0 ? 0 : r)
                                    .toArray();
                    DType other = DType.values()[random.nextInt(3)];
                    DType out = DType.values()[random.nextInt(3)];
                    Problem problem =
                            Problem.create(
                                    arena,
                                    Shards.of(rows),
                                    1 + random.nextInt(70),
                                    1 + random.nextInt(40),
                                    type,
                                    other,
                                    out,
                                    transposed,
                                    random.nextLong());
                    problem.requireWithinFloat64Bound();
                    try (AllGatherMatmul op = operator(fabric, problem, algorithm)) {
                        for (int call = 0; call < 3; call++) {
                            check(problem, op.call(problem.shard(fabric.rank())), algorithm);
                        }
                    }
                }
            }
            System.out.println("right " + algorithm.label());
        }
    }

    private static Problem endlessProblem(Fabric fabric, Arena arena) {
        long[] rows = {40, 0, 33, 12};
        return problem(arena, Shards.of(Arrays.copyOf(rows, fabric.size())), 7);
    }

    private static void tellRunning(Fabric fabric) {
        System.out.println("running " + fabric.rank() + " " + ProcessHandle.current().pid());
    }

    /** Calls until something ends it, be it that rank {@code culprit} throws. */
    private static void endless(Fabric fabric, Arena arena, Algorithm algorithm, int culprit) {
        Problem problem = endlessProblem(fabric, arena);
        try (AllGatherMatmul op = operator(fabric, problem, algorithm)) {
            for (int call = 0; ; call++) {
                check(problem, op.call(problem.shard(fabric.rank())), algorithm);
                if (call == 20) {
                    tellRunning(fabric);
                }
                if (call == 30 && fabric.rank() == culprit) {
                    throw new IllegalStateException("the press broke");
                }
            }
        }
    }

    /** All call, but rank {@code holder} makes the others wait, alive and telling so. */
    private static void hold(Fabric fabric, Arena arena, int holder) {
        Problem problem = endlessProblem(fabric, arena);
        try (AllGatherMatmul op = operator(fabric, problem, Algorithm.MESH_PUSH)) {
            check(problem, op.call(problem.shard(fabric.rank())), Algorithm.MESH_PUSH);
            fabric.barrier();
            if (fabric.rank() == holder) {
                AtomicBoolean forever = new AtomicBoolean(true);
                tellRunning(fabric);
                while (forever.get()) {
                    fabric.worked();
                    LockSupport.parkNanos(5_000_000);
                }
            }
            tellRunning(fabric);
            op.call(problem.shard(fabric.rank()));
        }
    }

    private static Problem problem(Arena arena, Shards shards, long seed) {
        return Problem.create(
                arena, shards, 33, 20, DType.BF16, DType.FP16, DType.FP32, false, seed);
    }

    private static AllGatherMatmul operator(Fabric fabric, Problem problem, Algorithm algorithm) {
        return problem.on(fabric).algorithm(algorithm).chunkRows(7).keepGathered().prepare();
    }

    private static void check(Problem problem, Result<Matrix> result, Algorithm algorithm) {
        long row = problem.unfused().firstDifferentRow(result.product());
        if (row >= 0 || !problem.a().bitwiseEquals(result.gathered().orElseThrow())) {
            throw new IllegalStateException(
                    algorithm.label()
                            + ", shards "
                            + problem.shards()
                            + ": wrong, product row "
                            + row);
        }
    }
}
