package dev.weft.bench.jmh;

import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.gemm.Scratch;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * One thread's product of all rows, by engine and type; the counter {@code flops} is per second.
 */
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
@Fork(
        value = 1,
        jvmArgsAppend = {"--enable-native-access=ALL-UNNAMED"})
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@State(Scope.Thread)
public class GemmBenchmark {

    @Param({"native", "scalar"})
    String engine;

    @Param({"fp32", "fp16", "bf16"})
    String dtype;

    /** M x K x N. */
    @Param({"1024x1024x1024", "16x2048x1024"})
    String shape;

    private Arena arena;
    private Gemm gemm;
    private Matrix a;
    private PackedB packed;
    private Matrix c;
    private Scratch scratch;

    /** Floating-point operations, counted so that JMH divides them by the time. */
    @AuxCounters(AuxCounters.Type.OPERATIONS)
    @State(Scope.Thread)
    public static class Flops {
        public double flops;
    }

    @Setup
    public void prepare() {
        String[] sizes = shape.split("x");
        long m = Long.parseLong(sizes[0]);
        long k = Long.parseLong(sizes[1]);
        long n = Long.parseLong(sizes[2]);
        DType type = DType.of(dtype);
        arena = Arena.ofShared();
        gemm = Gemms.byName(engine);
        a = Matrix.allocate(arena, type, m, k);
        Matrix b = Matrix.allocate(arena, type, k, n);
        new NormalData(1, 0).fill(a);
        new NormalData(1, 1).fill(b);
        packed = gemm.pack(b, false, arena);
        c = Matrix.allocate(arena, DType.FP32, m, n);
        scratch = gemm.scratch(k, n, arena);
        gemm.multiply(a, 0, m, packed, c, 0, scratch);
        Deviation deviation = new Float64Oracle(a, b, false).check(c, 0, m / 2, m - 1);
        if (!deviation.withinBound()) {
            throw new IllegalStateException("wrong product: " + deviation.describe());
        }
    }

    @TearDown
    public void free() {
        arena.close();
    }

    @Benchmark
    public void multiply(Flops counter) {
        gemm.multiply(a, 0, a.rows(), packed, c, 0, scratch);
        counter.flops += 2.0 * a.rows() * a.cols() * packed.n();
    }
}
