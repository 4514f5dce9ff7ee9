package dev.weft.compat;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.DeviceProgress;
import dev.weft.cuda.Gpu;
import dev.weft.tensor.DType;

/**
 * What the Helion calls on devices refuse beside {@link HelionChecks}, each with the actual
 * numbers. Any thread may call; no GPU is needed.
 */
final class HelionDeviceChecks {

    /** Rows must start so for the copies of the tensor memory accelerator. */
    private static final int ALIGNMENT_BYTES = 16;

    private HelionDeviceChecks() {}

    static void shard(long rows, long cols, DType dtype) {
        int unit = ALIGNMENT_BYTES / dtype.bytes();
        if (rows < 0 || cols < 1 || cols % unit != 0 || dtype == DType.FP32) {
            throw new IllegalArgumentException(
                    "a symmetric matrix of ["
                            + rows
                            + ", "
                            + cols
                            + "] "
                            + dtype.label()
                            + " on a GPU: expected zero or more rows, a multiple of "
                            + unit
                            + " columns so that rows start at multiples of 16 bytes, and fp16 or"
                            + " bf16");
        }
    }

    static void sameGpu(Gpu gpu, Gpu ofShared) {
        if (gpu != ofShared) {
            throw new IllegalArgumentException(
                    "aShared lies on " + ofShared + ": expected " + gpu + ", as the call says");
        }
    }

    /** Gathered A, whoever made it, for shards of [rows, cols] on {@code ranks} ranks. */
    static void gathered(
            String name, DeviceMatrix gathered, long rows, long cols, DType dtype, int ranks) {
        if (gathered.rows() != rows * ranks
                || gathered.cols() != cols
                || gathered.dtype() != dtype) {
            throw new IllegalArgumentException(
                    name
                            + " is "
                            + gathered.describe()
                            + ": expected ["
                            + rows * ranks
                            + ", "
                            + cols
                            + "] "
                            + dtype.label()
                            + " for "
                            + ranks
                            + " shards of ["
                            + rows
                            + ", "
                            + cols
                            + "] "
                            + dtype.label());
        }
        if (gathered.rowPitch() != cols) {
            throw new IllegalArgumentException(
                    name
                            + " "
                            + gathered.describe()
                            + " is not contiguous: its rows are "
                            + gathered.rowPitch()
                            + " elements apart, expected "
                            + cols);
        }
        aligned(name, gathered);
    }

    /** B [K, N], or [N, K] if transposed, for an A of {@code aCols} columns. */
    static void rhs(DeviceMatrix b, boolean transposed, long aCols, DType aType) {
        long k = transposed ? b.cols() : b.rows();
        long n = transposed ? b.rows() : b.cols();
        HelionChecks.inner(aCols, k, n);
        if (b.dtype() != aType || n < 1) {
            throw new IllegalArgumentException(
                    "b is "
                            + b.describe()
                            + ": expected at least one column of C and A's type, "
                            + aType.label());
        }
        aligned("b", b);
    }

    private static void aligned(String name, DeviceMatrix matrix) {
        if (matrix.address() % ALIGNMENT_BYTES != 0 || matrix.pitchBytes() % ALIGNMENT_BYTES != 0) {
            throw new IllegalArgumentException(
                    name
                            + " "
                            + matrix.describe()
                            + " at "
                            + matrix.address()
                            + " with rows "
                            + matrix.pitchBytes()
                            + " bytes apart: expected multiples of 16 bytes for both");
        }
    }

    static void splits(long rows, long cols, int ranks, int splitsPerRank) {
        HelionChecks.splits(splitsPerRank);
        HelionChecks.divisible(rows, cols, splitsPerRank);
        if ((long) ranks * splitsPerRank > Integer.MAX_VALUE / Integer.BYTES) {
            throw new IllegalArgumentException(
                    ranks
                            + " ranks x "
                            + splitsPerRank
                            + " splits: expected at most "
                            + Integer.MAX_VALUE / Integer.BYTES
                            + " chunks");
        }
    }

    static void progress(DeviceProgress progress, int ranks, int splitsPerRank) {
        HelionChecks.longEnough(progress.size(), ranks, splitsPerRank);
    }

    static void rank(int rank, int ranks) {
        if (rank < 0 || rank >= ranks) {
            throw new IllegalArgumentException(
                    "rank " + rank + " of a group of " + ranks + " ranks");
        }
    }
}
