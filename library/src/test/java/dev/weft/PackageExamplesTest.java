package dev.weft;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.plan.group.Experts;
import dev.weft.plan.group.RowGroups;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Placement;
import dev.weft.plan.step.Placement.OfRank;
import dev.weft.plan.step.Placement.Range;
import dev.weft.plan.step.StepChecker;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.StepPlanBuilder;
import dev.weft.plan.step.SumOrder;
import dev.weft.predict.MachineModel;
import dev.weft.predict.MachineModel.PredictedCall;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import dev.weft.trace.Timeline;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.module.ModuleDescriptor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Runs the examples that the pages of the exported packages show. */
class PackageExamplesTest {

    @TempDir private Path folder;

    static List<String> exportedPackages() throws Exception {
        return ArchitectureTest.library().exports().stream()
                .filter(exports -> !exports.isQualified())
                .map(ModuleDescriptor.Exports::source)
                .sorted()
                .toList();
    }

    @ParameterizedTest
    @MethodSource("exportedPackages")
    void thePageOfAPackageShowsAnExampleThatRunsHere(String name) throws IOException {
        String page = Files.readString(source("main", name + ".package-info"));
        Matcher snippet =
                Pattern.compile("\\{@snippet :\n(.*?)\n \\* }\n \\*\n", Pattern.DOTALL)
                        .matcher(page);
        assertTrue(snippet.find(), "an example on the page of " + name);
        String example = snippet.group(1).replaceAll("(?m)^ \\* ?", "").indent(4);
        String here = Files.readString(source("test", getClass().getName()));
        assertTrue(here.contains(example), () -> "not run here:\n" + example);
    }

    private static Path source(String of, String name) {
        return Path.of("src", of, "java", name.replace('.', '/') + ".java");
    }

    static List<Long> sums() {
        try (World world = World.threads(4)) {
            return world.call(fabric -> Arrays.stream(fabric.exchange(fabric.rank())).sum());
        }
    }

    @Test
    void ranksExchangeNumbers() {
        assertEquals(List.of(6L, 6L, 6L, 6L), sums());
    }

    static List<Float> lastElements(Matrix a, Matrix b) {
        Shards shards = Shards.of(3, 0, 2); // rows of A on each rank
        try (World world = World.threads(3)) {
            return world.call(
                    fabric -> {
                        int rank = fabric.rank();
                        Matrix shard = a.rows(shards.firstRow(rank), shards.rows(rank));
                        try (AllGatherMatmul op =
                                AllGatherMatmul.on(fabric).a(shards, a.dtype()).b(b).prepare()) {
                            Matrix c = op.call(shard).product(); // as often as you like
                            return c.get(c.rows() - 1, c.cols() - 1);
                        }
                    });
        }
    }

    @Test
    void everyRankHasTheWholeProduct() {
        try (Arena arena = Arena.ofShared()) {
            Matrix a = Matrix.copyOf(arena, new float[][] {{1}, {2}, {3}, {4}, {5}});
            Matrix b = Matrix.copyOf(arena, new float[][] {{1, 10}});
            assertEquals(List.of(50f, 50f, 50f), lastElements(a, b));
        }
    }

    static List<String> ring() {
        Chunks chunks = Chunks.bySplits(Shards.of(100, 0, 80), 64, 2, 50);
        GatherRequest request = new GatherRequest(chunks, 1, Hosts.one(3), 32);
        List<StepPlan> plans = Algorithm.RING.plans(request);
        StepChecker.check(plans, request.placement(), request.hosts()::shareMemory);
        return StepPlan.describe(plans);
    }

    @Test
    void aPlanCanBeRead() {
        List<String> lines = ring();
        assertTrue(
                lines.contains("    copy 0:A[0..50, 0..64] to 1:gathered[0..50, 0..64] then 1.2"),
                lines::toString);
    }

    static RowGroups firstExperts() {
        Experts experts = Experts.of(Shards.even(64, 4), 6); // 64 experts on 4 ranks, 6 for a row
        RowGroups rows = new RowGroups(experts.count(0), experts.capacity(0, 1000));
        int[] counts = new int[experts.count(0)];
        counts[2] = 1;
        rows.begin(Shards.even(1000, 4), counts, 0);
        rows.put(0, 999, 0.5f); // the last row goes to the third expert, with weight 0.5
        return rows;
    }

    @Test
    void aGroupHasItsRows() {
        RowGroups rows = firstExperts();
        assertEquals(16, rows.groups());
        assertEquals(6000, rows.capacity());
        assertEquals(1, rows.count(2));
        assertEquals(999, rows.row(rows.first(2)));
        assertEquals(0.5f, rows.weight(rows.first(2)));
    }

    static String order() {
        Range rows = new Range(0, 3);
        Range front = new Range(0, 4); // columns of A, and rows of B, of rank 0
        Range back = new Range(4, 5);
        OfRank first = new OfRank(rows, front, front, rows);
        OfRank second = new OfRank(rows, back, back, new Range(0, 0)); // gets nothing of C
        Placement placement = new Placement(3, 9, 2, List.of(first, second));
        StepPlanBuilder plan = new StepPlanBuilder(placement);
        Part own = plan.buffer(0, "own", Buffer.Kind.SUMS, 3, 2);
        Part others = plan.buffer(1, "others", Buffer.Kind.SUMS, 3, 2);
        Part arrived = plan.buffer(0, "arrived", Buffer.Kind.SUMS, 3, 2);
        plan.multiply(0, 0, plan.a(0), plan.b(0), own, false);
        plan.multiply(1, 0, plan.a(1), plan.b(1), others, false);
        plan.copy(1, 0, others, arrived);
        plan.add(0, 0, List.of(own, arrived), plan.c(0));
        Set<SumOrder> orders = StepChecker.check(plan.build(), placement, (rank, other) -> false);
        return orders.iterator().next().text(); // (k 0..4) + (k 4..9)
    }

    @Test
    void stepsSayHowTheySum() {
        assertEquals("(k 0..4) + (k 4..9)", order());
    }

    static double microseconds(Algorithm algorithm) {
        MachineModel machine = MachineModel.of("h200-nvlink8");
        Chunks chunks = machine.chunks(Shards.even(16384, 8), 8192, 7);
        PredictedCall call = machine.predict(algorithm, chunks, 7, DType.BF16, 4096);
        return call.ns() / 1000;
    }

    @Test
    void aMeshIsFasterThanAGatherFollowedByAProduct() {
        assertTrue(microseconds(Algorithm.MESH_PULL) < microseconds(Algorithm.SEQUENTIAL));
    }

    static long busyNs(Timeline timeline, Timeline.Kind kind) {
        return timeline.tracks().stream()
                .flatMap(track -> track.spans().stream())
                .filter(span -> span.kind() == kind)
                .mapToLong(span -> span.endNs() - span.startNs())
                .sum();
    }

    @Test
    void aTimelineSaysWhatTookTime() {
        Timeline.Kind kind = Timeline.Kind.COMPUTE;
        List<Timeline.Span> spans =
                List.of(
                        Timeline.Span.local(kind, 0, 0, 0, 8, 10, 15),
                        Timeline.Span.local(Timeline.Kind.WAIT, 1, 1, 0, 8, 15, 40),
                        Timeline.Span.local(kind, 1, 0, 0, 8, 40, 48));
        Timeline timeline = new Timeline(0, 0, 50, List.of(new Timeline.Track("one", spans)));
        assertEquals(13, busyNs(timeline, kind));
    }

    static Matrix written(String file, Arena arena) throws IOException {
        Matrix a = Matrix.allocate(arena, DType.BF16, 1024, 512);
        a.fill(new Random(19)::nextGaussian);
        MatrixFiles.write(file, a); // a.npy, or model.safetensors:a
        return MatrixFiles.locate(file, DType.BF16, MatrixFiles.ANY, 512).read(arena);
    }

    @Test
    void aMatrixIsReadAsItWasWritten() throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            Matrix expected = Matrix.allocate(arena, DType.BF16, 1024, 512);
            expected.fill(new Random(19)::nextGaussian);
            assertTrue(expected.bitwiseEquals(written(folder.resolve("a.npy").toString(), arena)));
        }
    }

    static void roundTrip(Matrix a, Matrix copy) {
        Gpu.open(0);
        long bytes = DeviceMatrix.alignedBytes(a.dtype(), a.rows(), a.cols());
        try (DeviceBuffer buffer = DeviceBuffer.allocate(bytes);
                GpuStream stream = GpuStream.create()) {
            DeviceMatrix there = DeviceMatrix.in(buffer, a.dtype(), a.rows(), a.cols());
            there.upload(a, stream);
            there.download(copy, stream);
        }
    }

    @Test
    @Tag("gpu")
    void aMatrixComesBackFromAGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> Gpu.unavailable().orElseThrow());
        try (Arena arena = Arena.ofShared()) {
            Matrix a = Matrix.copyOf(arena, new float[][] {{1, 2, 3}, {4, 5, 6}});
            Matrix copy = Matrix.allocate(arena, DType.FP32, 2, 3);
            roundTrip(a, copy);
            assertTrue(a.bitwiseEquals(copy));
        }
    }

    static void multiply(Fabric fabric, Matrix shard, Matrix b, Matrix c) {
        Gpu gpu = Gpu.open(fabric.rank() % Gpu.count());
        Shards shards = Shards.even(c.rows(), fabric.size());
        try (CudaAllGatherMatmul op =
                        CudaAllGatherMatmul.on(fabric, gpu)
                                .a(shards, shard.dtype())
                                .b(b, false)
                                .output(c.dtype())
                                .prepare();
                GpuStream stream = GpuStream.create()) {
            op.nextShard().upload(shard, stream);
            op.call(op.nextShard()); // as often as you like
            op.product(0).download(c, stream);
        }
    }

    @Test
    @Tag("gpu")
    void aGpuMultipliesToo() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> Gpu.unavailable().orElseThrow());
        try (Arena arena = Arena.ofShared();
                World world = World.threads(1)) {
            Matrix a = Matrix.allocate(arena, DType.BF16, 256, 64);
            Matrix b = Matrix.allocate(arena, DType.BF16, 64, 128);
            Matrix c = Matrix.allocate(arena, DType.FP32, 256, 128);
            a.fill(() -> 1);
            b.fill(() -> 2);
            world.run(fabric -> multiply(fabric, a, b, c));
            assertEquals(128f, c.get(255, 127));
        }
    }
}
