package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.FabricException.PeerLostException;
import dev.weft.fabric.FabricException.StallException;
import dev.weft.fabric.transport.Ranks;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** What the Helion calls refuse, and how they end when they cannot succeed. */
class HelionFailureTest {

    /** A call with a shard of [6, 4] bf16 on each of two ranks. */
    @FunctionalInterface
    private interface Call {
        void make(Fabric fabric, HelionShared<Matrix> shared, Arena arena);
    }

    private static Matrix zeros(Arena arena, long rows, long cols) {
        return Matrix.allocate(arena, DType.BF16, rows, cols);
    }

    private static Arguments refusal(String says, Call call) {
        return Arguments.of(says, call);
    }

    static Stream<Arguments> refusals() {
        return Stream.of(
                refusal(
                        "A [6, 4] bf16 is not contiguous: its rows are 5 elements apart",
                        (f, s, a) ->
                                Helion.allGatherMatmul(
                                        f,
                                        zeros(a, 6, 5).block(0, 6, 0, 4),
                                        zeros(a, 4, 3),
                                        false,
                                        null,
                                        null,
                                        1)),
                refusal(
                        "24 elements of [6, 4] in 5 splits",
                        (f, s, a) ->
                                Helion.allGatherMatmul(f, s, zeros(a, 4, 3), false, null, null, 5)),
                refusal(
                        "0 splits per rank: expected at least one",
                        (f, s, a) ->
                                Helion.allGatherMatmul(f, s, zeros(a, 4, 3), false, null, null, 0)),
                refusal(
                        "progress for 4 chunks: expected at least 6, 2 ranks x 3 splits",
                        (f, s, a) -> {
                            HelionProgress progress = Helion.progress(f, 2);
                            Helion.allGatherMatmul(f, s, zeros(a, 4, 3), false, null, progress, 3);
                        }),
                refusal(
                        "aOut is [11, 4] bf16: expected [12, 4] bf16 for 2 shards of [6, 4] bf16",
                        (f, s, a) ->
                                Helion.allGatherMatmul(
                                        f, s, zeros(a, 4, 3), false, zeros(a, 11, 4), null, 1)),
                refusal(
                        "aOut [12, 4] bf16 is not contiguous: its rows are 9 elements apart",
                        (f, s, a) ->
                                Helion.allGatherMatmul(
                                        f,
                                        s,
                                        zeros(a, 4, 3),
                                        false,
                                        zeros(a, 12, 9).block(0, 12, 0, 4),
                                        null,
                                        1)),
                refusal(
                        "aOut belongs to one thread",
                        (f, s, a) ->
                                Helion.allGatherMatmul(
                                        f,
                                        s,
                                        zeros(a, 4, 3),
                                        false,
                                        zeros(Arena.ofConfined(), 12, 4),
                                        null,
                                        1)),
                refusal(
                        "K is 4 in A and 5 in B [5, 3]",
                        (f, s, a) -> Helion.allGatherMatmul(f, s, zeros(a, 5, 3))),
                refusal(
                        "K is 4 in A and 3 in B [3, 4]",
                        (f, s, a) ->
                                Helion.allGatherMatmul(f, s, zeros(a, 4, 3), true, null, null, 1)),
                refusal(
                        "K is 4 in A and 5 in B [5, 3]",
                        (f, s, a) -> {
                            HelionProgress progress = Helion.progress(f, 1);
                            progress.begin(1);
                            Helion.matmulWithProgress(
                                    zeros(a, 12, 4), s, zeros(a, 5, 3), false, progress, 1, 0);
                        }),
                refusal(
                        "progress for 2 chunks: expected at least 4, 2 ranks x 2 splits",
                        (f, s, a) -> {
                            HelionProgress progress = Helion.progress(f, 1);
                            Helion.matmulWithProgress(
                                    zeros(a, 12, 4), s, zeros(a, 4, 3), false, progress, 2, 0);
                        }),
                refusal(
                        "c is [12, 3] fp32: expected [12, 3] bf16",
                        (f, s, a) ->
                                Helion.allGatherMatmul(
                                        f,
                                        s,
                                        zeros(a, 4, 3),
                                        false,
                                        null,
                                        Matrix.allocate(a, DType.FP32, 12, 3),
                                        null,
                                        1,
                                        null)),
                refusal(
                        "progress in 3 bytes aligned to",
                        (f, s, a) -> Helion.progress(f, a.allocate(3, 4))),
                refusal(
                        "progress in 8 bytes aligned to 1: expected 32-bit words",
                        (f, s, a) -> Helion.progress(f, MemorySegment.ofArray(new byte[8]))),
                refusal(
                        "tiles of 128 x 0 in steps of 64 by 8 warps in 3 stages",
                        (f, s, a) -> new Helion.Config(128, 0, 64, 8, 3)),
                refusal(
                        "aShared was made on another group",
                        (f, s, a) -> Helion.allGatherMatmul(f.split(1), s, zeros(a, 4, 3))),
                refusal(
                        "a symmetric matrix of [3, 0]",
                        (f, s, a) -> Helion.empty(f, 3, 0, DType.BF16)),
                refusal(
                        "no group: expected the fabric",
                        (f, s, a) -> Helion.allGatherMatmul(null, s, zeros(a, 4, 3))),
                refusal(
                        "no group: expected the fabric",
                        (f, s, a) -> Helion.empty(null, 1, 1, DType.BF16)));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("refusals")
    void whatCannotBeIsRefusedWithItsNumbers(String says, Call call) {
        Arena arena = Arena.ofAuto();
        Ranks.run(
                2,
                fabric -> {
                    HelionShared<Matrix> shared = Helion.empty(fabric, 6, 4, DType.BF16);
                    IllegalArgumentException refusal =
                            assertThrows(
                                    IllegalArgumentException.class,
                                    () -> call.make(fabric, shared, arena));
                    assertTrue(refusal.getMessage().contains(says), refusal.getMessage());
                });
    }

    @ParameterizedTest
    @CsvSource({
        "7, 4, BF16, 'rows: 6 on rank 0 and 7 on rank 1'",
        "6, 5, BF16, 'columns: 4 on rank 0 and 5 on rank 1'",
        "6, 4, FP16, 'dtype (0 fp32, 1 fp16, 2 bf16): 2 on rank 0 and 1 on rank 1'"
    })
    void shardsOfUnlikeShapeAreNamedOnBothRanks(long rows, long cols, DType dtype, String says) {
        Ranks.run(
                2,
                fabric -> {
                    boolean other = fabric.rank() == 1;
                    RuntimeException refusal =
                            assertThrows(
                                    RuntimeException.class,
                                    () ->
                                            Helion.empty(
                                                    fabric,
                                                    other ? rows : 6,
                                                    other ? cols : 4,
                                                    other ? dtype : DType.BF16));
                    assertTrue(refusal.getMessage().contains(says), refusal.getMessage());
                });
    }

    /**
     * The original looks only at the first chunk of a tile. Here the tile of rows 0 to 5 reads
     * three chunks, one of which never comes: the wait must end with an error that names it.
     */
    @Test
    void aTileWaitsForEveryChunkThatItReads() {
        for (int missing = 0; missing < 3; missing++) {
            int last = missing;
            Arena arena = Arena.ofAuto();
            Ranks.run(
                    1,
                    Duration.ofMillis(150),
                    fabric -> {
                        HelionShared<Matrix> shared = Helion.empty(fabric, 6, 4, DType.BF16);
                        HelionProgress progress = Helion.progress(fabric, 3);
                        progress.begin(3);
                        for (int split = 0; split < 3; split++) {
                            if (split != last) {
                                progress.publish(0, split);
                            }
                        }
                        StallException stall =
                                assertThrows(
                                        StallException.class,
                                        () ->
                                                Helion.matmulWithProgress(
                                                        zeros(arena, 6, 4),
                                                        shared,
                                                        zeros(arena, 4, 3),
                                                        false,
                                                        progress,
                                                        3,
                                                        0));
                        assertEquals(0, stall.source());
                        assertEquals(last, stall.chunk());
                    });
        }
    }

    @Test
    void aPeerThatFailsIsNamedWithItsReason() {
        Arena arena = Arena.ofAuto();
        IllegalStateException cause =
                assertThrows(
                        IllegalStateException.class,
                        () ->
                                Ranks.run(
                                        3,
                                        fabric -> {
                                            HelionShared<Matrix> shared =
                                                    Helion.empty(fabric, 6, 4, DType.BF16);
                                            if (fabric.rank() == 1) {
                                                throw new IllegalStateException("no input");
                                            }
                                            Helion.allGatherMatmul(
                                                    fabric, shared, zeros(arena, 4, 3));
                                        }));
        assertEquals("no input", cause.getMessage());
        assertEquals(2, cause.getSuppressed().length, "both peers noticed");
        for (Throwable noticed : cause.getSuppressed()) {
            PeerFailedException failed = assertInstanceOf(PeerFailedException.class, noticed);
            assertEquals(1, failed.peer());
            assertEquals("no input", failed.reason());
        }
    }

    @Test
    void aPeerThatLeavesIsNamed() {
        Arena arena = Arena.ofAuto();
        FabricException lost =
                assertThrows(
                        FabricException.class,
                        () ->
                                Ranks.run(
                                        2,
                                        fabric -> {
                                            HelionShared<Matrix> shared =
                                                    Helion.empty(fabric, 6, 4, DType.BF16);
                                            if (fabric.rank() == 0) {
                                                Helion.allGatherMatmul(
                                                        fabric, shared, zeros(arena, 4, 3));
                                            }
                                        }));
        assertEquals(1, assertInstanceOf(PeerLostException.class, lost).peer());
    }
}
