package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.tensor.DType;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What the Helion calls on devices refuse, without a device. */
class HelionChecksTest {

    private static final long ADDRESS = 1 << 20;

    private static DeviceMatrix bf16(long rows, long cols) {
        return new DeviceMatrix(ADDRESS, DType.BF16, rows, cols, cols);
    }

    /** No GPU is asked. */
    private static Place.Size size(DeviceMatrix matrix) {
        return Place.on(null).size(matrix);
    }

    /** Gathered A of two shards of [6, 8] bf16. */
    private static void gathered(DeviceMatrix matrix) {
        HelionChecks.gathered("aOut", size(matrix), size(bf16(6, 8)), 2);
    }

    private static Arguments refusal(String says, Executable call) {
        return Arguments.of(says, call);
    }

    static Stream<Arguments> refusals() {
        return Stream.of(
                refusal(
                        "a symmetric matrix of [6, 0]: expected zero or more rows and at least one"
                                + " column",
                        () -> HelionChecks.shard(6, 0)),
                refusal(
                        "c is [12, 9] bf16: expected [12, 10] bf16",
                        () -> HelionChecks.product(size(bf16(12, 9)), 12, 10, DType.BF16)),
                refusal(
                        "c is [12, 10] bf16: expected [12, 10] fp32",
                        () -> HelionChecks.product(size(bf16(12, 10)), 12, 10, DType.FP32)),
                refusal(
                        "aOut is [11, 8] bf16: expected [12, 8] bf16 for 2 shards of [6, 8] bf16",
                        () -> gathered(bf16(11, 8))),
                refusal(
                        "aOut is [12, 8] fp16: expected [12, 8] bf16 for 2 shards of [6, 8] bf16",
                        () -> gathered(new DeviceMatrix(ADDRESS, DType.FP16, 12, 8, 8))),
                refusal(
                        "aOut [12, 8] bf16 is not contiguous: its rows are 16 elements apart,"
                                + " expected 8",
                        () -> gathered(new DeviceMatrix(ADDRESS, DType.BF16, 12, 8, 16))),
                refusal(
                        "0 splits per rank: expected at least one",
                        () -> HelionChecks.splits(6, 8, 2, 0)),
                refusal(
                        "48 elements of [6, 8] in 5 splits: expected a number of splits that"
                                + " divides them",
                        () -> HelionChecks.splits(6, 8, 2, 5)),
                refusal(
                        "2 ranks x 1073741824 splits: expected at most 536870911 chunks",
                        () -> HelionChecks.splits(0, 8, 2, 1 << 30)),
                refusal(
                        "progress for 5 chunks: expected at least 6, 2 ranks x 3 splits",
                        () -> HelionChecks.longEnough(5, 2, 3)),
                refusal("rank 2 of a group of 2 ranks", () -> HelionChecks.rank(2, 2)),
                refusal(
                        "no group: expected the fabric of the ranks that gather",
                        () -> HelionCuda.empty(null, null, 6, 8, DType.BF16)));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("refusals")
    void whatCannotBeIsRefusedWithItsNumbers(String says, Executable call) {
        assertEquals(says, assertThrows(IllegalArgumentException.class, call).getMessage());
    }

    @Test
    void whatFitsIsAccepted() {
        HelionChecks.shard(0, 13);
        HelionChecks.product(size(bf16(12, 10)), 12, 10, DType.BF16);
        gathered(bf16(12, 8));
        HelionChecks.splits(6, 8, 2, 16);
        HelionChecks.longEnough(6, 2, 3);
        HelionChecks.rank(1, 2);
    }
}
