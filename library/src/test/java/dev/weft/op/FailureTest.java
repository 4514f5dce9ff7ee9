package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.FabricException.PeerLostException;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** How calls end that cannot succeed: on every rank, with the reason, and without a hang. */
class FailureTest {

    private static final Shards SHARDS = Shards.of(10, 0, 7);

    private final Problem problem = Problem.create(Arena.ofAuto(), SHARDS, 12, 9, DType.FP16, 21);

    static Stream<Arguments> mismatches() {
        return Stream.of(
                mismatch("M is 17 on rank 0 and 18", b -> b.a(Shards.of(10, 1, 7), DType.FP16)),
                mismatch("the rows of rank", b -> b.a(Shards.of(9, 1, 7), DType.FP16)),
                mismatch("A's dtype", b -> b.a(SHARDS, DType.BF16)),
                mismatch("algorithm", b -> b.algorithm(Algorithm.RING)),
                mismatch("chunk rows is 0 on rank 0 and 3", b -> b.chunkRows(3)),
                mismatch("splits per rank", b -> b.splitsPerRank(2)),
                mismatch("chunk columns", b -> b.chunkCols(4)),
                mismatch("communication workers", b -> b.commWorkers(2)),
                mismatch("gathered A", b -> b.keepGathered()));
    }

    private static Arguments mismatch(String says, Consumer<AllGatherMatmulBuilder> difference) {
        return Arguments.of(says, difference);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("mismatches")
    void ranksThatPrepareDifferentOperatorsAreBothNamed(
            String says, Consumer<AllGatherMatmulBuilder> difference) {
        assertRefusedByAll(
                fabric -> {
                    AllGatherMatmulBuilder builder = problem.on(fabric);
                    if (fabric.rank() == 2) {
                        difference.accept(builder);
                    }
                    return builder;
                },
                says);
    }

    static Stream<Arguments> mismatchedSums() {
        Shards kParts = Shards.of(4, 4, 4);
        return Stream.of(
                mismatchedSum("the rows of rank", b -> b.a(Shards.of(9, 1, 7), kParts, DType.FP16)),
                mismatchedSum("K of rank 0", b -> b.a(SHARDS, Shards.of(3, 5, 4), DType.FP16)),
                mismatchedSum("A's dtype", b -> b.a(SHARDS, kParts, DType.BF16)),
                mismatchedSum("the algorithm's number", b -> b.algorithm(Reduction.CHAIN)),
                mismatchedSum("the order of sums", b -> b.order(Order.BY_RANK)),
                mismatchedSum("chunk rows is 0 on rank 0 and 3", b -> b.chunkRows(3)),
                mismatchedSum("the epilogue", b -> b.epilogue(Epilogue.none().relu())),
                mismatchedSum("the dtype of product", b -> b.output(DType.BF16)));
    }

    private static Arguments mismatchedSum(String says, Consumer<MatmulReduceBuilder<?>> change) {
        return Arguments.of(says, change);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("mismatchedSums")
    void ranksThatPrepareDifferentSumsAreBothNamed(
            String says, Consumer<MatmulReduceBuilder<?>> difference) {
        assertRefusedByAll(
                fabric -> {
                    MatmulReduceBuilder<MatmulAllReduce> builder =
                            MatmulAllReduce.on(fabric)
                                    .a(SHARDS, Shards.of(4, 4, 4), DType.FP16)
                                    .b(problem.b().rows(4L * fabric.rank(), 4));
                    if (fabric.rank() == 2) {
                        difference.accept(builder);
                    }
                    return builder;
                },
                says);
    }

    /** They hold the same memory, so it must be told before anything is summed. */
    @Test
    void aSumForAllAndOneThatIsScatteredAreToldApart() {
        assertRefusedByAll(
                fabric ->
                        (fabric.rank() == 2 ? OperatorKind.ALL : OperatorKind.SCATTER)
                                .on(fabric, problem, "chain"),
                "all-reduce is 0 on rank 0 and 1 on rank 2");
    }

    @Test
    void anotherKIsNamedOnBothRanks() {
        Matrix longer = Matrix.allocate(Arena.ofAuto(), DType.FP16, 13, 9);
        assertRefusedByAll(
                fabric ->
                        AllGatherMatmul.on(fabric)
                                .a(SHARDS, DType.FP16)
                                .b(fabric.rank() == 2 ? longer : problem.b()),
                "K is 12 on rank 0 and 13 on rank 2");
    }

    private static void assertRefusedByAll(
            Ranks.Function<MatmulBuilder<Matrix, ?>> description, String says) {
        List<String> messages =
                Ranks.call(
                        3,
                        fabric -> {
                            MatmulBuilder<Matrix, ?> builder = description.apply(fabric);
                            RuntimeException refusal =
                                    assertThrows(RuntimeException.class, builder::prepare);
                            assertTrue(
                                    refusal instanceof IllegalArgumentException
                                            || refusal instanceof PeerFailedException,
                                    refusal.toString());
                            return refusal.getMessage();
                        });
        for (String message : messages) {
            assertTrue(message.contains(says), message);
            assertTrue(message.contains("on rank 0") && message.contains("on rank 2"), message);
        }
    }

    /** A description that is wrong on one rank only ends the preparation on the others too. */
    @Test
    void aDescriptionRefusedOnOneRankEndsAll() {
        Ranks.run(
                3,
                fabric -> {
                    AllGatherMatmulBuilder builder = AllGatherMatmul.on(fabric);
                    builder.a(SHARDS, DType.FP16);
                    if (fabric.rank() != 1) {
                        builder.b(problem.b());
                    }
                    RuntimeException refusal =
                            assertThrows(RuntimeException.class, builder::prepare);
                    String message = refusal.getMessage();
                    assertTrue(message.contains("at least one b(...)"), message);
                    if (fabric.rank() != 1) {
                        assertEquals(
                                1, assertInstanceOf(PeerFailedException.class, refusal).peer());
                    }
                });
    }

    /** Throws at the given product, on one rank. */
    private static Gemm faulty(Transport fabric, int rank, int product, Throwable fault) {
        AtomicInteger products = new AtomicInteger();
        return new GemmProxy(
                Gemms.byName("scalar"),
                () -> {
                    if (fabric.rank() == rank && products.incrementAndGet() == product) {
                        FailureTest.<RuntimeException>sneak(fault);
                    }
                });
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> void sneak(Throwable fault) throws T {
        throw (T) fault;
    }

    @ParameterizedTest
    @EnumSource
    void anEngineThatThrowsWhileAutoTriesPlansEndsThePreparationOnEveryRank(OperatorKind kind) {
        RuntimeException fault = new IllegalStateException("the needle broke");
        Ranks.run(
                3,
                fabric -> {
                    MatmulBuilder<Matrix, ?> builder =
                            kind.on(fabric, problem, "auto").engine(faulty(fabric, 2, 5, fault));
                    RuntimeException end = assertThrows(RuntimeException.class, builder::prepare);
                    if (fabric.rank() == 2) {
                        assertSame(fault, end);
                    } else {
                        assertEquals(
                                "the needle broke",
                                assertInstanceOf(PeerFailedException.class, end).reason());
                    }
                });
    }

    @ParameterizedTest
    @MethodSource("dev.weft.op.OperatorKind#withAlgorithmsButAuto")
    void anEngineThatThrowsEndsEveryRankWithThatCause(OperatorKind kind, String algorithm) {
        RuntimeException fault = new IllegalStateException("the needle broke");
        Ranks.run(
                3,
                fabric -> {
                    int rank = fabric.rank();
                    Matrix input = kind.input(problem, rank);
                    try (Operator<Matrix> op =
                            kind.on(fabric, problem, algorithm)
                                    .engine(faulty(fabric, 2, 5, fault))
                                    .chunkRows(3)
                                    .prepare()) {
                        RuntimeException end =
                                assertThrows(
                                        RuntimeException.class,
                                        () -> {
                                            for (int call = 0; call < 1000; call++) {
                                                op.call(input);
                                            }
                                        });
                        if (rank == 2) {
                            assertSame(fault, end);
                        } else {
                            PeerFailedException told =
                                    assertInstanceOf(PeerFailedException.class, end);
                            assertEquals(2, told.peer());
                            assertEquals("the needle broke", told.reason());
                        }
                        assertRefusesFurtherCalls(op, input, end);
                    }
                });
    }

    private static void assertRefusesFurtherCalls(
            Operator<Matrix> op, Matrix shard, Throwable cause) {
        IllegalStateException refusal =
                assertThrows(IllegalStateException.class, () -> op.call(shard));
        assertEquals(
                "the operator has failed, and its world with it: expected World.renew()",
                refusal.getMessage());
        assertSame(cause, refusal.getCause());
        assertThrows(IllegalStateException.class, op::nextShard);
        assertThrows(IllegalStateException.class, () -> op.callInPlace(View.COMPUTE_ONLY));
    }

    @Test
    void anErrorOfTheEngineIsKeptAsCause() {
        Error fault = new StackOverflowError("too deep");
        Arena arena = Arena.ofAuto();
        Ranks.run(
                1,
                fabric -> {
                    Matrix b = Matrix.allocate(arena, DType.FP32, 4, 4);
                    Matrix a = Matrix.allocate(arena, DType.FP32, 3, 4);
                    try (AllGatherMatmul op =
                            AllGatherMatmul.on(fabric)
                                    .a(Shards.of(3), DType.FP32)
                                    .b(b)
                                    .engine(faulty(fabric, 0, 1, fault))
                                    .prepare()) {
                        IllegalStateException end =
                                assertThrows(IllegalStateException.class, () -> op.call(a));
                        assertSame(fault, end.getCause());
                    }
                });
    }

    /** The staging copy fails: nothing has started, and the operator goes on working. */
    @ParameterizedTest
    @CsvSource({"GATHER, mesh-push", "SCATTER, direct", "ALL, direct"})
    void aShardThatCannotBeReadSpoilsNothing(OperatorKind kind, String algorithm) {
        Arena arena = Arena.ofAuto();
        Problem problem = Problem.create(arena, Shards.of(4, 5), 6, 7, DType.FP16, 8);
        Ranks.run(
                2,
                fabric -> {
                    Matrix input = kind.input(problem, fabric.rank());
                    Matrix freed;
                    try (Arena gone = Arena.ofConfined()) {
                        freed = Matrix.allocate(gone, DType.FP16, input.rows(), input.cols());
                    }
                    try (Operator<Matrix> op = kind.on(fabric, problem, algorithm).prepare()) {
                        for (int call = 0; call < 5; call++) {
                            if (fabric.rank() == 1) {
                                assertThrows(IllegalStateException.class, () -> op.call(freed));
                            }
                            Matrix product = op.call(input).product();
                            Matrix expected = kind.expected(problem, fabric.rank());
                            assertTrue(expected.bitwiseEquals(product));
                        }
                    }
                });
    }

    @ParameterizedTest
    @MethodSource("dev.weft.op.OperatorKind#withAlgorithms")
    void aPeerThatStopsCallingIsNamed(OperatorKind kind, String algorithm) {
        Ranks.run(
                3,
                fabric -> {
                    Matrix input = kind.input(problem, fabric.rank());
                    try (Operator<Matrix> op = kind.on(fabric, problem, algorithm).prepare()) {
                        op.call(input);
                        // A rank that still copies for its first call would fail with the rest.
                        fabric.barrier();
                        if (fabric.rank() == 2) {
                            return;
                        }
                        RuntimeException end =
                                assertThrows(
                                        RuntimeException.class,
                                        () -> {
                                            for (int call = 0; call < 5; call++) {
                                                op.call(input);
                                            }
                                        });
                        int peer =
                                end instanceof PeerLostException lost
                                        ? lost.peer()
                                        : assertInstanceOf(PeerFailedException.class, end).peer();
                        assertEquals(2, peer, end.getMessage());
                    }
                });
    }

    @ParameterizedTest
    @EnumSource
    void aClosedOperatorRefusesCallsAndClosesTwice(OperatorKind kind) {
        Ranks.run(
                3,
                fabric -> {
                    Matrix input = kind.input(problem, fabric.rank());
                    Operator<Matrix> op = kind.on(fabric, problem, "auto").prepare();
                    op.start(input);
                    op.close();
                    op.close();
                    IllegalStateException refusal =
                            assertThrows(IllegalStateException.class, () -> op.call(input));
                    assertEquals("the operator is closed", refusal.getMessage());
                });
    }
}
