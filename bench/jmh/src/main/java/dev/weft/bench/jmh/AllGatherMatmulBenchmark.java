package dev.weft.bench.jmh;

import dev.weft.fabric.World;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.Result;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** Time of one fused call among threads, by algorithm. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(
        value = 1,
        jvmArgsAppend = {"--enable-native-access=ALL-UNNAMED"})
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 5, time = 2)
@State(Scope.Benchmark)
public class AllGatherMatmulBenchmark {

    /** Calls per invocation: starting the rank threads must not be what is measured. */
    private static final int CALLS = 20;

    @Param({"sequential", "ring", "bidirectional-ring", "mesh-push", "mesh-pull", "direct"})
    String algorithm;

    @Param("2")
    int ranks;

    private Arena arena;
    private World world;
    private Matrix a;
    private List<AllGatherMatmul> operators;

    @Setup
    public void prepare() {
        arena = Arena.ofShared();
        a = Matrix.allocate(arena, DType.BF16, 1024, 1024);
        Matrix b = Matrix.allocate(arena, DType.BF16, 1024, 256);
        new NormalData(1, 0).fill(a);
        new NormalData(1, 1).fill(b);
        world = World.threads(ranks);
        operators =
                world.call(
                        fabric ->
                                AllGatherMatmul.on(fabric)
                                        .a(Shards.even(a.rows(), ranks), DType.BF16)
                                        .b(b)
                                        .output(DType.FP32)
                                        .algorithm(Algorithm.of(algorithm))
                                        .prepare());
        for (Result<Matrix> result : calls(1)) {
            Deviation deviation =
                    new Float64Oracle(a, b, false).check(result.product(), 0, 511, 1023);
            if (!deviation.withinBound()) {
                throw new IllegalStateException("wrong product: " + deviation.describe());
            }
        }
    }

    private List<Result<Matrix>> calls(int count) {
        Shards shards = Shards.even(a.rows(), ranks);
        return world.call(
                fabric -> {
                    int rank = fabric.rank();
                    Matrix shard = a.rows(shards.firstRow(rank), shards.rows(rank));
                    Result<Matrix> result = operators.get(rank).call(shard);
                    for (int i = 1; i < count; i++) {
                        result = operators.get(rank).call(shard);
                    }
                    return result;
                });
    }

    @Benchmark
    @OperationsPerInvocation(CALLS)
    public List<Result<Matrix>> call() {
        return calls(CALLS);
    }

    @TearDown
    public void free() {
        operators.forEach(AllGatherMatmul::close);
        world.close();
        arena.close();
    }
}
