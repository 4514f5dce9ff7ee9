package dev.weft.cli.launch;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.MatmulAllReduce;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;

/**
 * A rank that renews its world after a failure and then goes on with the weights that it has.
 * Argument: a folder. If it holds a file {@code hold-RANK-MOMENT}, the rank writes its process
 * number to {@code at-RANK-MOMENT} and goes on once the former is gone. With a file {@code
 * fail-RANK} it throws once in the middle of its work, with {@code ignore-sigterm-RANK} it goes on
 * at SIGTERM until its work has ended.
 */
final class RestartedRank {

    private static final int ROUNDS = 20;
    private static final long MOST_HELD_NS = 60_000_000_000L;
    private static final int ROWS = 16;
    private static final int K = 12;
    private static final int N = 6;

    private final Path folder;
    private final int rank;
    private final Matrix b;

    private RestartedRank(Path folder, Arena arena) {
        this.folder = folder;
        this.rank = Integer.parseInt(System.getenv("WEFT_RANK"));
        this.b = Matrix.allocate(arena, DType.FP32, K, N);
        b.fill(new Random(7)::nextGaussian);
    }

    public static void main(String... arguments) throws Exception {
        String exits = "rank " + System.getenv("WEFT_RANK") + " exits";
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println(exits)));
        try (Arena arena = Arena.ofShared()) {
            new RestartedRank(Path.of(arguments[0]), arena).run(arena);
        }
    }

    private void run(Arena arena) throws Exception {
        if (Files.exists(folder.resolve("ignore-sigterm-" + rank))) {
            // The end waits for this thread.
            Thread own = Thread.currentThread();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> join(own)));
        }
        at("start");
        World world = World.joined();
        while (true) {
            try (World current = world) {
                current.run(fabric -> work(fabric, arena));
                System.out.println("rank " + rank + " is done");
                at("end");
                return;
            } catch (FabricException | IllegalArgumentException e) {
                System.out.println("rank " + rank + " renews: " + e.getMessage());
                at("renew");
                world = world.renew();
            }
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join(Duration.ofNanos(MOST_HELD_NS));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void work(Fabric fabric, Arena arena) throws Exception {
        Shards rows = Shards.even(ROWS, fabric.size());
        Shards parts = Shards.even(K, fabric.size());
        try (AllGatherMatmul gather =
                AllGatherMatmul.on(fabric)
                        .a(rows, DType.FP32)
                        .b(b)
                        .algorithm(Algorithm.RING)
                        .prepare()) {
            at("prepare");
            try (MatmulAllReduce sum =
                    MatmulAllReduce.on(fabric)
                            .a(rows, parts, DType.FP32)
                            .b(b.rows(parts.firstRow(rank), parts.rows(rank)))
                            .algorithm(Reduction.CHAIN)
                            .prepare()) {
                for (int round = 0; round < ROUNDS; round++) {
                    failIfAsked(round);
                    Matrix a = Matrix.allocate(arena, DType.FP32, ROWS, K);
                    a.fill(new Random(round)::nextGaussian);
                    var call = gather.start(a.rows(rows.firstRow(rank), rows.rows(rank)));
                    at("call");
                    check(a, call.await().product(), round);
                    Matrix columns = a.block(0, ROWS, parts.firstRow(rank), parts.rows(rank));
                    check(a, sum.call(columns).product(), round);
                }
            }
        }
    }

    /** Ranks do so in different rounds, so that each of them is the first one in some world. */
    private void failIfAsked(int round) throws IOException {
        if (round == 5 * (rank + 1) && Files.deleteIfExists(folder.resolve("fail-" + rank))) {
            throw new IllegalArgumentException("no such request");
        }
    }

    /** The product's bits are those of one rank, which adds in the order of K. */
    private void check(Matrix a, Matrix c, int round) {
        float[] expected = new float[(int) a.rows() * N];
        for (int i = 0; i < expected.length; i++) {
            float sum = 0;
            for (int k = 0; k < K; k++) {
                sum = Math.fma(a.get(i / N, k), b.get(k, i % N), sum);
            }
            expected[i] = sum;
        }
        if (!Arrays.equals(expected, c.toArray())) {
            throw new AssertionError("rank " + rank + " has a wrong product in round " + round);
        }
    }

    private void at(String moment) throws IOException {
        Path hold = folder.resolve("hold-" + rank + "-" + moment);
        if (!Files.exists(hold)) {
            return;
        }
        Path at = folder.resolve("at-" + rank + "-" + moment);
        Files.writeString(at, ProcessHandle.current().pid() + "\n");
        long until = System.nanoTime() + MOST_HELD_NS;
        while (Files.exists(hold) && System.nanoTime() < until) {
            LockSupport.parkNanos(5_000_000);
        }
    }
}
