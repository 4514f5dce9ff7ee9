package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.World;
import dev.weft.op.AllGather;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;

/**
 * One rank on the first GPU, in a process of its own, for {@link CudaProcessesIT}. It prints {@code
 * right WHAT} for what was right, and {@code ended CLASS PEER MESSAGE} where a peer gave it cause.
 */
final class CudaProcessRank {

    private CudaProcessRank() {}

    public static void main(String[] args) {
        int code = 0;
        try (World world = World.joined();
                Arena arena = Arena.ofShared()) {
            Gpu gpu = Gpu.open(0);
            world.run(
                    fabric -> {
                        gpu.bind();
                        run(fabric, arena, gpu, args[0]);
                    });
        } catch (FabricException e) {
            System.out.println(
                    "ended "
                            + e.getClass().getSimpleName()
                            + " "
                            + e.peer()
                            + " "
                            + e.getMessage());
            code = 3;
        }
        System.exit(code);
    }

    private static void run(Fabric fabric, Arena arena, Gpu gpu, String what) {
        int ranks = fabric.size();
        switch (what) {
            case "right" -> {
                for (int lanes = 1; lanes <= 2; lanes++) {
                    ring(fabric, arena, gpu, Shards.even(96L * ranks, ranks), lanes, 8);
                }
                long[] rows = new long[ranks];
                java.util.Arrays.setAll(rows, r -> r == 1 ? 0 : 30 + 50L * r);
                ring(fabric, arena, gpu, Shards.of(rows), 2, 8);
                columns(fabric, arena, gpu);
                sums(fabric, arena, gpu);
                DevicePeerResultsIT.Inputs inputs =
                        DevicePeerResultsIT.Inputs.create(arena, gpu, ranks);
                for (DevicePeerResultsIT.Way way : DevicePeerResultsIT.Way.values()) {
                    DevicePeerResultsIT.read(fabric, arena, gpu, inputs, way);
                    System.out.println("right results of peers by " + way);
                }
            }
            case "endless" ->
                    ring(fabric, arena, gpu, Shards.even(96L * ranks, ranks), 1, Integer.MAX_VALUE);
            default -> throw new IllegalArgumentException(what);
        }
    }

    private static void ring(
            Fabric fabric, Arena arena, Gpu gpu, Shards shards, int lanes, int calls) {
        DeviceProblem problem =
                DeviceProblem.random(arena, shards, 264, 392, DType.BF16, DType.FP32, false);
        Matrix golden = PingPongRingIT.golden(arena, problem, gpu);
        try (CudaAllGatherMatmul op =
                        problem.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                .pingPong(lanes)
                                .prepare();
                GpuStream stream = GpuStream.create()) {
            Matrix c = Matrix.allocate(arena, DType.FP32, golden.rows(), golden.cols());
            for (int call = 0; call < calls; call++) {
                op.nextShard().upload(problem.shard(fabric.rank()), stream);
                op.call(op.nextShard());
                if (call == 0) {
                    System.out.println("running");
                }
                op.product(0).download(c, stream);
                if (!golden.bitwiseEquals(c)) {
                    throw new IllegalStateException(
                            "call " + call + " differs in row " + golden.firstDifferentRow(c));
                }
            }
        }
        System.out.println("right ring of " + lanes + " lanes, " + shards);
    }

    /** Operators whose peers open the same memory of a rank, at the same time and again. */
    private static void sums(Fabric fabric, Arena arena, Gpu gpu) {
        int ranks = fabric.size();
        int rank = fabric.rank();
        Shards rows = Shards.even(96L * ranks, ranks);
        Shards kParts = Shards.even(32L * ranks, ranks);
        SumProblem p = SumProblem.random(arena, rows, kParts, 136, DType.BF16, DType.FP32, false);
        Matrix whole = p.product(gpu, 0, 32L * ranks, DType.FP32, arena);
        Matrix own = p.b(p.begin(rank), p.end(rank));
        try (CudaWeights weights = CudaWeights.copyOf(gpu, own, false)) {
            for (int again = 0; again < 2; again++) {
                try (CudaMatmulReduce scatter = sum(fabric, gpu, p, weights, false);
                        CudaMatmulReduce all = sum(fabric, gpu, p, weights, true)) {
                    for (CudaMatmulReduce op : List.of(scatter, all, scatter)) {
                        weights.replace(own);
                        SumProblem.callPoisoned(gpu, op, p.aOf(rank));
                        SumProblem.assertSame(
                                p.rowsFor(whole, rank, op == all),
                                SumProblem.download(op.product(0), arena),
                                "sums of weights");
                    }
                }
            }
        }
        System.out.println("right sums of weights");
    }

    private static CudaMatmulReduce sum(
            Fabric fabric, Gpu gpu, SumProblem p, CudaWeights weights, boolean all) {
        return CudaMatmulReduce.on(fabric, gpu, all)
                .a(p.rows(), p.kParts(), DType.BF16)
                .b(weights)
                .output(DType.FP32)
                .algorithm(Reduction.DIRECT)
                .prepare();
    }

    private static void columns(Fabric fabric, Arena arena, Gpu gpu) {
        for (DType type : DType.UNSCALED) {
            long rows = 61;
            long cols = 33;
            Matrix input = DeviceGatherIT.bytes(arena, type, rows, cols * fabric.size(), 4);
            try (AllGather<DeviceMatrix> gather =
                            AllGather.columns(
                                    CudaAllGatherMatmul.on(fabric, gpu),
                                    rows,
                                    cols,
                                    type,
                                    Algorithm.MESH_PUSH,
                                    0);
                    GpuStream stream = GpuStream.create()) {
                Matrix part = input.block(0, rows, cols * fabric.rank(), cols);
                Matrix host = Matrix.allocate(arena, type, rows, cols * fabric.size());
                for (int call = 0; call < 3; call++) {
                    gather.nextShard().upload(part, stream);
                    gather.call(gather.nextShard()).download(host, stream);
                    if (!input.bitwiseEquals(host)) {
                        throw new IllegalStateException("columns of " + type.label() + " differ");
                    }
                }
            }
            System.out.println("right columns of " + type.label());
        }
    }
}
