package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.DeviceProgress;
import dev.weft.tensor.DType;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What the Helion calls on devices refuse, without a device. */
class HelionDeviceChecksTest {

    private static final long ADDRESS = 1 << 20;

    private static DeviceMatrix bf16(long rows, long cols) {
        return new DeviceMatrix(ADDRESS, DType.BF16, rows, cols, cols);
    }

    /** Gathered A of two shards of [6, 8] bf16. */
    private static void gathered(DeviceMatrix matrix) {
        HelionDeviceChecks.gathered("aOut", matrix, 6, 8, DType.BF16, 2);
    }

    private static Arguments refusal(String says, Executable call) {
        return Arguments.of(says, call);
    }

    static Stream<Arguments> refusals() {
        return Stream.of(
                refusal(
                        "a symmetric matrix of [6, 12] bf16 on a GPU: expected zero or more rows, a"
                                + " multiple of 8 columns so that rows start at multiples of 16"
                                + " bytes, and fp16 or bf16",
                        () -> HelionDeviceChecks.shard(6, 12, DType.BF16)),
                refusal(
                        "a symmetric matrix of [6, 8] fp32 on a GPU: expected zero or more rows, a"
                                + " multiple of 4 columns so that rows start at multiples of 16"
                                + " bytes, and fp16 or bf16",
                        () -> HelionDeviceChecks.shard(6, 8, DType.FP32)),
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
                        "aOut [12, 8] bf16 at 1048580 with rows 16 bytes apart: expected multiples"
                                + " of 16 bytes for both",
                        () -> gathered(new DeviceMatrix(ADDRESS + 4, DType.BF16, 12, 8, 8))),
                refusal(
                        "K is 8 in A and 16 in B [16, 24]",
                        () -> HelionDeviceChecks.rhs(bf16(16, 24), false, 8, DType.BF16)),
                refusal(
                        "K is 8 in A and 24 in B [24, 16]",
                        () -> HelionDeviceChecks.rhs(bf16(16, 24), true, 8, DType.BF16)),
                refusal(
                        "b is [8, 24] bf16: expected at least one column of C and A's type, fp16",
                        () -> HelionDeviceChecks.rhs(bf16(8, 24), false, 8, DType.FP16)),
                refusal(
                        "b is [8, 0] bf16: expected at least one column of C and A's type, bf16",
                        () -> HelionDeviceChecks.rhs(bf16(8, 0), false, 8, DType.BF16)),
                refusal(
                        "b [8, 13] bf16 at 1048576 with rows 26 bytes apart: expected multiples of"
                                + " 16 bytes for both",
                        () -> HelionDeviceChecks.rhs(bf16(8, 13), false, 8, DType.BF16)),
                refusal(
                        "0 splits per rank: expected at least one",
                        () -> HelionDeviceChecks.splits(6, 8, 2, 0)),
                refusal(
                        "48 elements of [6, 8] in 5 splits: expected a number of splits that"
                                + " divides them",
                        () -> HelionDeviceChecks.splits(6, 8, 2, 5)),
                refusal(
                        "2 ranks x 1073741824 splits: expected at most 536870911 chunks",
                        () -> HelionDeviceChecks.splits(0, 8, 2, 1 << 30)),
                refusal(
                        "progress for 5 chunks: expected at least 6, 2 ranks x 3 splits",
                        () -> HelionDeviceChecks.progress(new DeviceProgress(ADDRESS, 5), 2, 3)),
                refusal("rank 2 of a group of 2 ranks", () -> HelionDeviceChecks.rank(2, 2)),
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
        HelionDeviceChecks.shard(6, 8, DType.BF16);
        HelionDeviceChecks.shard(0, 16, DType.FP16);
        gathered(bf16(12, 8));
        HelionDeviceChecks.rhs(bf16(8, 24), false, 8, DType.BF16);
        HelionDeviceChecks.rhs(bf16(13, 8), true, 8, DType.BF16);
        HelionDeviceChecks.splits(6, 8, 2, 16);
        HelionDeviceChecks.progress(new DeviceProgress(ADDRESS, 6), 2, 3);
        HelionDeviceChecks.rank(1, 2);
    }
}
