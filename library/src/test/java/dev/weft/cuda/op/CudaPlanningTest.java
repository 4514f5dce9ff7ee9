package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.exec.CopyList;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.cuda.kernel.KernelFamily.Tiling;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.exec.Description;
import dev.weft.op.exec.Description.Feature;
import dev.weft.op.exec.EpilogueSteps;
import dev.weft.plan.Algorithm;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.ArrivalCut;
import dev.weft.plan.cut.Cut;
import dev.weft.search.Candidate;
import dev.weft.tensor.DType;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Plans of ranks whose rows come from host memory, their own or a peer's: no GPU is asked. */
class CudaPlanningTest {

    private static final GatedKernel KERNEL =
            new GatedKernel(KernelFamily.HOPPER, 0, 0, 2, 132, new Tiling(128, 256, 64, 8, 4));
    private static final long K = 4096;
    private static final long N = 4096;
    private static final EpilogueSteps NO_EPILOGUE =
            new EpilogueSteps("", List.of(), List.of(), null, N, null, null);

    /** What a caller may say, as far as planning depends on it. */
    private record Request(
            Algorithm algorithm,
            CudaEngine engine,
            long chunkRows,
            int splits,
            long chunkCols,
            int streams) {

        CudaPlanning on(Transport fabric, boolean staged, int rank, Shards shards, long k) {
            Description wanted =
                    new Description(
                            shards,
                            DType.FP16,
                            null,
                            k,
                            DType.FP16,
                            List.of(N),
                            algorithm,
                            null,
                            engine.label(),
                            new Cut(chunkRows, splits, chunkCols),
                            0,
                            streams,
                            Set.of(),
                            null);
            return new CudaPlanning(fabric, staged, null, rank, engine, wanted);
        }
    }

    private static CudaPlanning planning(Request request) {
        return request.on(null, false, 1, Shards.even(8192, 4), K);
    }

    private static Plan stagedPlan(Transport fabric, Request request) {
        Shards shards = Shards.even(8192, fabric.size());
        CudaPlanning planning = request.on(fabric, true, fabric.rank(), shards, K);
        planning.agree(NO_EPILOGUE);
        return planning.plan(request.algorithm());
    }

    private static Request request(Algorithm algorithm, CudaEngine engine) {
        return new Request(algorithm, engine, 0, 0, 0, 0);
    }

    private static CopyList list(CudaPlanning planning, Algorithm algorithm, GatedKernel kernel) {
        Plan plan = planning.plan(algorithm);
        ArrivalCut cut = kernel == null ? null : planning.arrivalCut(plan, N, kernel);
        return CopyList.of(plan.steps(), 1, plan.chunks(), cut);
    }

    @Test
    void pullingTakesWholeShardsAndCutsWhatArrivesLast() {
        CudaPlanning planning = planning(request(Algorithm.MESH_PULL, CudaEngine.GATED));
        Plan plan = planning.plan(Algorithm.MESH_PULL);
        assertEquals("mesh-pull", plan.name());
        assertEquals(4, plan.chunks().total());
        assertEquals(1, plan.steps().get(1).movers());
        CopyList list = list(planning, Algorithm.MESH_PULL, KERNEL);
        assertTrue(list.flags() > plan.chunks().total(), list.flags() + " flags");
        assertEquals(0, list.ranges().getFirst().pieces().size());
        assertEquals(1, list.ranges().getFirst().source());
        assertTrue(list.ranges().getLast().narrow());
    }

    @Test
    void whoChoosesChunksOrSeveralStreamsGetsThem() {
        Request chunks = new Request(Algorithm.MESH_PULL, CudaEngine.GATED, 100, 0, 0, 0);
        Plan plan = planning(chunks).plan(Algorithm.MESH_PULL);
        assertEquals(100, plan.chunks().chunkRows(0));
        assertEquals(
                plan.chunks().total(), list(planning(chunks), Algorithm.MESH_PULL, KERNEL).flags());
        Request streams = new Request(Algorithm.MESH_PULL, CudaEngine.GATED, 0, 0, 0, 2);
        assertEquals(2, planning(streams).plan(Algorithm.MESH_PULL).steps().get(1).movers());
        Request splits = new Request(Algorithm.MESH_PULL, CudaEngine.GATED, 0, 8, 128, 0);
        assertEquals(
                4 * 8 * (K / 128), planning(splits).plan(Algorithm.MESH_PULL).chunks().total());
    }

    @Test
    void cublasTakesChunksOfSixteenMebibytesUncut() {
        CudaPlanning planning =
                request(Algorithm.MESH_PULL, CudaEngine.CUBLAS)
                        .on(null, false, 1, Shards.even(8192, 4), 2 * K);
        Plan plan = planning.plan(Algorithm.MESH_PULL);
        assertEquals(1024, plan.chunks().chunkRows(0));
        assertEquals(plan.chunks().total(), list(planning, Algorithm.MESH_PULL, null).flags());
    }

    @Test
    void sequentialRowsWaitForNothing() {
        CudaPlanning planning = planning(request(Algorithm.SEQUENTIAL, CudaEngine.GATED));
        CopyList list = list(planning, Algorithm.SEQUENTIAL, KERNEL);
        assertTrue(list.ranges().stream().allMatch(s -> s.pieces().isEmpty()));
    }

    /** What comes from host memory pays to overlap by any model, and sequential is beside it. */
    @Test
    void autoPricesWhatThisRankCanRun() {
        List<Candidate> alone = planning(request(Algorithm.AUTO, CudaEngine.GATED)).prices();
        assertEquals(
                List.of(Algorithm.MESH_PULL, Algorithm.SEQUENTIAL),
                alone.stream().map(Candidate::algorithm).toList());
        assertTrue(alone.getFirst().predictedNs() < alone.getLast().predictedNs());
    }

    @Test
    void whatDoesNotFitIsRefusedWithItsValues() {
        assertRefused(request(Algorithm.RING, CudaEngine.GATED), "ring");
        assertRefused(new Request(Algorithm.MESH_PULL, CudaEngine.GATED, 10, 2, 0, 0), "10");
        assertRefused(new Request(Algorithm.MESH_PULL, CudaEngine.GATED, 0, 0, 100, 0), "100");
    }

    @Test
    void throughHostMemoryChunksAreSmallerAndNothingIsReadInPlace() {
        Ranks.run(
                3,
                Duration.ofSeconds(10),
                fabric -> {
                    Plan plan = stagedPlan(fabric, request(Algorithm.MESH_PUSH, CudaEngine.GATED));
                    assertEquals(512, plan.chunks().chunkRows(0));
                    assertFalse(plan.readsPeersRows());
                    List<Candidate> prices =
                            request(Algorithm.AUTO, CudaEngine.GATED)
                                    .on(fabric, true, fabric.rank(), Shards.even(8192, 3), K)
                                    .prices();
                    Set<Algorithm> all =
                            Set.of(
                                    Algorithm.MESH_PUSH,
                                    Algorithm.MESH_PULL,
                                    Algorithm.RING,
                                    Algorithm.BIDIRECTIONAL_RING,
                                    Algorithm.SEQUENTIAL);
                    assertEquals(
                            fabric.rank() == 0 ? all : Set.of(),
                            prices.stream().map(Candidate::algorithm).collect(Collectors.toSet()));
                });
    }

    @Test
    void throughHostMemoryNobodyPullsWholeShards() {
        Ranks.run(
                3,
                Duration.ofSeconds(10),
                fabric ->
                        assertEquals(
                                512,
                                stagedPlan(
                                                Transport.of(fabric),
                                                request(Algorithm.MESH_PULL, CudaEngine.GATED))
                                        .chunks()
                                        .chunkRows(0)));
    }

    @Test
    void throughHostMemoryNobodyReadsInPlace() {
        Ranks.run(
                2,
                Duration.ofSeconds(10),
                fabric -> {
                    IllegalArgumentException refusal =
                            assertThrows(
                                    IllegalArgumentException.class,
                                    () ->
                                            stagedPlan(
                                                    fabric,
                                                    request(Algorithm.DIRECT, CudaEngine.GATED)));
                    assertTrue(refusal.getMessage().contains("direct"), refusal.getMessage());
                    // Both have exchanged what they mean before either leaves.
                    fabric.barrier();
                });
    }

    @Test
    void whatPeersCannotReachIsRefused() {
        for (Feature feature : List.of(Feature.PING_PONG, Feature.SIDE_BY_SIDE)) {
            GatherWriter writer =
                    feature == Feature.PING_PONG ? Algorithm.pingPongRing() : Algorithm.MESH_PULL;
            Description wanted =
                    new Description(
                            Shards.even(64, 2),
                            DType.FP32,
                            null,
                            7,
                            DType.FP32,
                            List.of(),
                            writer,
                            null,
                            null,
                            Cut.AUTOMATIC,
                            0,
                            0,
                            Set.of(feature),
                            null);
            CudaPlanning planning =
                    new CudaPlanning(null, false, null, 0, CudaEngine.GATED, wanted);
            IllegalArgumentException refusal =
                    assertThrows(IllegalArgumentException.class, () -> planning.plan(writer));
            assertTrue(refusal.getMessage().contains("host memory"), refusal.getMessage());
        }
    }

    @Test
    void aRankAloneHasNothingToStage() {
        CudaAllGatherMatmulBuilder builder = CudaAllGatherMatmul.withHostPeers(null, 0);
        assertThrows(IllegalArgumentException.class, builder::staged);
    }

    @Test
    void ranksThatDisagreeOnStagingAreTold() {
        Ranks.run(
                2,
                Duration.ofSeconds(10),
                fabric -> {
                    boolean staged = fabric.rank() == 0;
                    CudaPlanning planning =
                            request(Algorithm.RING, CudaEngine.GATED)
                                    .on(fabric, staged, fabric.rank(), Shards.even(8192, 2), K);
                    IllegalArgumentException refusal =
                            assertThrows(
                                    IllegalArgumentException.class,
                                    () -> planning.agree(NO_EPILOGUE));
                    assertTrue(refusal.getMessage().contains("staging"), refusal.getMessage());
                    fabric.barrier();
                });
    }

    private static void assertRefused(Request request, String named) {
        IllegalArgumentException refusal =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> planning(request).plan(request.algorithm()));
        assertTrue(refusal.getMessage().contains(named), refusal.getMessage());
    }
}
