package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.Gpu;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.World;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Epilogue;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Ranks on one GPU that behave as if on different hosts: sums go through host memory. */
@Tag("gpu")
class StagedSumsIT {

    private static final Duration DEADLINE = Duration.ofSeconds(5);

    private static final List<Reduction> REDUCTIONS =
            List.of(Reduction.CHAIN, Reduction.MESH_PUSH, Reduction.SEQUENTIAL);

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    private interface Request {
        CudaMatmulReduceBuilder on(CudaMatmulReduceBuilder builder, int rank);
    }

    private interface Body {
        void run(Transport fabric, CudaMatmulReduce op);
    }

    private void onRanks(SumProblem p, boolean all, Request request, Body body) {
        try (World world = World.threads(p.ranks(), DEADLINE)) {
            world.run(
                    given -> {
                        Transport fabric = Transport.of(given);
                        gpu.bind();
                        CudaMatmulReduceBuilder builder =
                                p.describe(CudaMatmulReduce.on(fabric, gpu, all), fabric.rank());
                        try (CudaMatmulReduce op =
                                request.on(builder.staged(), fabric.rank()).prepare()) {
                            fabric.barrier();
                            body.run(fabric, op);
                            fabric.barrier();
                        }
                    });
        }
    }

    private Matrix expected(SumProblem p, Reduction reduction, Arena arena) {
        return reduction == Reduction.CHAIN
                ? p.product(gpu, 0, p.kParts().totalRows(), p.out(), arena)
                : p.byRank(gpu, arena);
    }

    private void runRanks(SumProblem p, boolean all, Reduction reduction, long chunkRows) {
        try (Arena arena = Arena.ofShared()) {
            Matrix whole = expected(p, reduction, arena);
            onRanks(
                    p,
                    all,
                    (builder, rank) -> {
                        CudaMatmulReduceBuilder chosen = builder.algorithm(reduction);
                        return chunkRows > 0 ? chosen.chunkRows(chunkRows) : chosen;
                    },
                    (fabric, op) -> {
                        for (int call = 0; call < 4; call++) {
                            fabric.barrier();
                            SumProblem.callPoisoned(gpu, op, p.aOf(fabric.rank()));
                            Matrix rows = p.rowsFor(whole, fabric.rank(), all);
                            if (rows.rows() > 0) {
                                Matrix found = SumProblem.download(op.product(0), arena);
                                String what = reduction + " on rank " + fabric.rank();
                                SumProblem.assertSame(rows, found, what);
                            }
                        }
                        assertEquals(reduction.label(), op.plan().name());
                    });
        }
    }

    private static SumProblem problem(Arena arena, int ranks) {
        return SumProblem.random(
                arena,
                Shards.even(1000, ranks),
                Shards.even(48L * ranks, ranks),
                392,
                DType.FP16,
                DType.FP16,
                true);
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4})
    void sumsHaveTheBitsOfOneRankOrOfTheirDefinition(int ranks) {
        try (Arena arena = Arena.ofShared()) {
            SumProblem p = problem(arena, ranks);
            for (boolean all : new boolean[] {false, true}) {
                for (Reduction reduction : REDUCTIONS) {
                    runRanks(p, all, reduction, 0);
                    runRanks(p, all, reduction, 70);
                }
            }
        }
    }

    @Test
    void unevenAndEmptyPartsAreSummed() {
        try (Arena arena = Arena.ofShared()) {
            SumProblem p =
                    SumProblem.random(
                            arena,
                            Shards.of(400, 0, 599, 1),
                            Shards.of(0, 320, 16, 0),
                            391,
                            DType.BF16,
                            DType.FP32,
                            false);
            for (boolean all : new boolean[] {false, true}) {
                for (Reduction reduction : REDUCTIONS) {
                    runRanks(p, all, reduction, 0);
                }
            }
        }
    }

    /** One rank has all of K: others have rows of C, and add nothing to what it sends. */
    @Test
    void aPartOfKOfOneRankIsSummed() {
        try (Arena arena = Arena.ofShared()) {
            for (DType out : List.of(DType.BF16, DType.FP32)) {
                SumProblem p =
                        SumProblem.random(
                                arena,
                                Shards.of(300, 200, 70),
                                Shards.of(0, 64, 0),
                                136,
                                DType.BF16,
                                out,
                                false);
                for (boolean all : new boolean[] {false, true}) {
                    for (Reduction reduction : REDUCTIONS) {
                        runRanks(p, all, reduction, 0);
                    }
                    roundedPartsAreAdded(p, all, arena);
                }
            }
        }
    }

    /** Rows that nobody adds to are a result as they are, and must still be sent. */
    @Test
    void ranksWithoutRowsGetThoseOfOthers() {
        try (Arena arena = Arena.ofShared()) {
            for (Shards kParts : List.of(Shards.of(0, 64), Shards.of(64, 0), Shards.of(32, 32))) {
                for (DType out : List.of(DType.BF16, DType.FP32)) {
                    SumProblem p =
                            SumProblem.random(
                                    arena, Shards.of(300, 0), kParts, 40, DType.BF16, out, false);
                    for (Reduction reduction : REDUCTIONS) {
                        runRanks(p, true, reduction, 0);
                    }
                    roundedPartsAreAdded(p, true, arena);
                }
            }
        }
    }

    /** Their columns together are as wide as a padded row of one of them on the device. */
    @Test
    void narrowProductsSideBySideDoNotDisturbEachOther() {
        try (Arena arena = Arena.ofShared()) {
            for (long[] widths : new long[][] {{1, 3}, {5, 3}, {3, 1}}) {
                List<SumProblem> each = new ArrayList<>();
                SumProblem first = null;
                for (long n : widths) {
                    SumProblem one =
                            SumProblem.random(
                                    arena,
                                    Shards.of(200, 100),
                                    Shards.of(16, 32),
                                    n,
                                    DType.FP16,
                                    DType.FP32,
                                    false);
                    first = first == null ? one : first;
                    each.add(
                            new SumProblem(
                                    one.rows(),
                                    one.kParts(),
                                    first.a(),
                                    one.b(),
                                    false,
                                    DType.FP32));
                }
                for (Reduction reduction : REDUCTIONS) {
                    List<Matrix> whole =
                            each.stream().map(p -> expected(p, reduction, arena)).toList();
                    SumProblem second = each.get(1);
                    onRanks(
                            each.getFirst(),
                            true,
                            (builder, rank) ->
                                    builder.b(second.b(second.begin(rank), second.end(rank)), false)
                                            .algorithm(reduction)
                                            .chunkRows(70),
                            (fabric, op) -> {
                                Matrix a = second.aOf(fabric.rank());
                                for (int call = 0; call < 3; call++) {
                                    SumProblem.callPoisoned(gpu, op, a);
                                    for (int i = 0; i < whole.size(); i++) {
                                        SumProblem.assertSame(
                                                whole.get(i),
                                                SumProblem.download(op.product(i), arena),
                                                reduction + ", product " + i);
                                    }
                                }
                            });
                }
            }
        }
    }

    @Test
    void roundedPartsAreAddedInRankOrder() {
        try (Arena arena = Arena.ofShared()) {
            SumProblem p =
                    SumProblem.random(
                            arena,
                            Shards.of(400, 0, 599, 1),
                            Shards.of(0, 320, 19, 7),
                            391,
                            DType.BF16,
                            DType.FP32,
                            false);
            roundedPartsAreAdded(p, false, arena);
            roundedPartsAreAdded(p, true, arena);
        }
    }

    /** Through host memory, and between ranks that reach each other's GPU. */
    private void roundedPartsAreAdded(SumProblem p, boolean all, Arena arena) {
        Matrix whole = p.byRank(gpu, DType.BF16, arena);
        for (Reduction reduction : List.of(Reduction.MESH_PUSH, Reduction.SEQUENTIAL)) {
            for (boolean staged : new boolean[] {true, false}) {
                try (World world = World.threads(p.ranks(), DEADLINE)) {
                    world.run(
                            fabric -> {
                                gpu.bind();
                                CudaMatmulReduceBuilder builder =
                                        p.describe(
                                                        CudaMatmulReduce.on(fabric, gpu, all),
                                                        fabric.rank())
                                                .algorithm(reduction)
                                                .order(Reduction.Order.BY_RANK_BF16);
                                try (CudaMatmulReduce op =
                                        (staged ? builder.staged() : builder).prepare()) {
                                    for (int call = 0; call < 3; call++) {
                                        fabric.barrier();
                                        SumProblem.callPoisoned(gpu, op, p.aOf(fabric.rank()));
                                        Matrix rows = p.rowsFor(whole, fabric.rank(), all);
                                        if (rows.rows() > 0) {
                                            SumProblem.assertSame(
                                                    rows,
                                                    SumProblem.download(op.product(0), arena),
                                                    reduction + " on rank " + fabric.rank());
                                        }
                                    }
                                    fabric.barrier();
                                }
                            });
                }
            }
        }
    }

    @Test
    void theKernelForOlderCardsSumsToo() {
        String before = System.getProperty(KernelFamily.PROPERTY);
        System.setProperty(KernelFamily.PROPERTY, "mma");
        try {
            unevenAndEmptyPartsAreSummed();
        } finally {
            if (before == null) {
                System.clearProperty(KernelFamily.PROPERTY);
            } else {
                System.setProperty(KernelFamily.PROPERTY, before);
            }
        }
    }

    /** Two products side by side in host memory, which an epilogue makes one result of. */
    @ParameterizedTest
    @EnumSource(
            value = Reduction.class,
            names = {"CHAIN", "MESH_PUSH"})
    void severalProductsAndAnEpilogueGoThroughHostMemory(Reduction reduction) {
        try (Arena arena = Arena.ofShared()) {
            SumProblem p = problem(arena, 3);
            Matrix other = Matrix.allocate(arena, p.b().dtype(), p.b().rows(), p.b().cols());
            DeviceProblem.fill(other, new Random(5));
            SumProblem gate = new SumProblem(p.rows(), p.kParts(), p.a(), p.b(), true, DType.FP32);
            SumProblem up = new SumProblem(p.rows(), p.kParts(), p.a(), other, true, DType.FP32);
            Epilogue swiglu = Epilogue.none().swiglu();
            Matrix joined = Matrix.allocate(arena, p.out(), 1000, 392);
            swiglu.apply(
                    List.of(expected(gate, reduction, arena), expected(up, reduction, arena)),
                    List.of(joined));
            onRanks(
                    p,
                    true,
                    (builder, rank) ->
                            builder.b(up.b(up.begin(rank), up.end(rank)), true)
                                    .algorithm(reduction)
                                    .epilogue(swiglu),
                    (fabric, op) -> {
                        SumProblem.callPoisoned(gpu, op, p.aOf(fabric.rank()));
                        Matrix found = SumProblem.download(op.product(0), arena);
                        SumProblem.assertSame(joined, found, "rank " + fabric.rank());
                    });
        }
    }

    @Test
    void theMeasuringViewsRunTheirPart() {
        try (Arena arena = Arena.ofShared()) {
            SumProblem p = problem(arena, 3);
            for (Reduction reduction : REDUCTIONS) {
                Matrix whole = expected(p, reduction, arena);
                onRanks(
                        p,
                        true,
                        (builder, rank) -> builder.algorithm(reduction).chunkRows(100),
                        (fabric, op) -> {
                            for (int i = 0; i < 2; i++) {
                                SumProblem.callPoisoned(gpu, op, p.aOf(fabric.rank()));
                            }
                            for (View view :
                                    List.of(View.COMM_ONLY, View.COMPUTE_ONLY, View.COMM_ONLY)) {
                                fabric.barrier();
                                op.callInPlace(view);
                            }
                            op.callInPlace(View.PIPELINED);
                            Matrix found = SumProblem.download(op.product(0), arena);
                            SumProblem.assertSame(whole, found, "rank " + fabric.rank());
                        });
            }
        }
    }

    /** In the midst of a call, while grids wait for its sums; the GPU serves on. */
    @ParameterizedTest
    @EnumSource(
            value = Reduction.class,
            names = {"CHAIN", "MESH_PUSH", "SEQUENTIAL"})
    void aRankThatCannotSendEndsTheCallOfAll(Reduction reduction) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(3, DEADLINE)) {
            SumProblem p = problem(arena, 3);
            world.run(
                    given -> {
                        Transport fabric = Transport.of(given);
                        gpu.bind();
                        boolean breaks = fabric.rank() == 1;
                        Transport link = breaks ? BrokenChunkMover.in(fabric, 3) : fabric;
                        try (CudaMatmulReduce op =
                                p.describe(CudaMatmulReduce.on(link, gpu, true), fabric.rank())
                                        .staged()
                                        .algorithm(reduction)
                                        .prepare()) {
                            fabric.barrier();
                            SumProblem.callPoisoned(gpu, op, p.aOf(fabric.rank()));
                            SumProblem.callPoisoned(gpu, op, p.aOf(fabric.rank()));
                            RuntimeException end =
                                    assertThrows(
                                            RuntimeException.class,
                                            () -> op.callInPlace(View.PIPELINED));
                            if (breaks) {
                                assertEquals(BrokenChunkMover.MESSAGE, end.getMessage());
                            } else {
                                assertTrue(end instanceof PeerFailedException, end.toString());
                                assertEquals(1, ((PeerFailedException) end).peer());
                            }
                            assertThrows(IllegalStateException.class, op::nextShard);
                        }
                    });
            runRanks(p, false, reduction, 0);
        }
    }

    @Test
    void aRankThatStopsCallingIsNamed() {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(3, Duration.ofSeconds(1))) {
            SumProblem p = problem(arena, 3);
            world.run(
                    given -> {
                        Transport fabric = Transport.of(given);
                        gpu.bind();
                        try (CudaMatmulReduce op =
                                p.describe(CudaMatmulReduce.on(fabric, gpu, false), fabric.rank())
                                        .staged()
                                        .algorithm(Reduction.CHAIN)
                                        .prepare()) {
                            fabric.barrier();
                            SumProblem.callPoisoned(gpu, op, p.aOf(fabric.rank()));
                            fabric.barrier();
                            if (fabric.rank() != 1) {
                                FabricException end =
                                        assertThrows(
                                                FabricException.class,
                                                () -> op.callInPlace(View.PIPELINED));
                                assertEquals(1, end.peer(), end.getMessage());
                                assertEquals(2, end.report().orElseThrow().call());
                                assertEquals(List.of(), end.report().orElseThrow().sent());
                            }
                        }
                    });
            runRanks(p, true, Reduction.CHAIN, 0);
        }
    }

    @Test
    void whatDoesNotApplyIsRefused() {
        try (Arena arena = Arena.ofShared()) {
            SumProblem p = problem(arena, 2);
            assertThrows(
                    IllegalArgumentException.class,
                    () -> CudaMatmulReduce.withHostPeers(gpu, 0, false).staged());
            try (World world = World.threads(2, DEADLINE)) {
                world.run(
                        fabric -> {
                            CudaMatmulReduceBuilder direct =
                                    p.describe(
                                                    CudaMatmulReduce.on(fabric, gpu, false),
                                                    fabric.rank())
                                            .staged()
                                            .algorithm(Reduction.DIRECT);
                            String refusal =
                                    assertThrows(IllegalArgumentException.class, direct::prepare)
                                            .getMessage();
                            assertTrue(refusal.contains("do not reach each other"), refusal);
                        });
            }
        }
    }
}
