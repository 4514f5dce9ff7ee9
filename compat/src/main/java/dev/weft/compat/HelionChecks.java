package dev.weft.compat;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.fabric.Fabric;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.util.function.Supplier;

/**
 * What the Helion calls refuse, with the actual numbers, on the CPU and on devices; the product
 * checks B on devices. Thread-safe; no GPU is needed.
 */
final class HelionChecks {

    private HelionChecks() {}

    static Fabric group(Fabric group) {
        if (group == null) {
            throw new IllegalArgumentException(
                    "no group: expected the fabric of the ranks that gather");
        }
        return group;
    }

    static void sameGroup(Fabric group, Fabric other, String name) {
        if (group != other) {
            throw new IllegalArgumentException(
                    ("%s was made on another group, of %s ranks: expected the group of %s"
                                    + " ranks that gathers")
                            .formatted(name, other.size(), group.size()));
        }
    }

    static void sameGpu(Gpu gpu, Gpu ofShared) {
        if (gpu != ofShared) {
            throw new IllegalArgumentException(
                    "aShared lies on " + ofShared + ": expected " + gpu + ", as the call says");
        }
    }

    static void rank(int rank, int ranks) {
        if (rank < 0 || rank >= ranks) {
            throw new IllegalArgumentException(
                    "rank " + rank + " of a group of " + ranks + " ranks");
        }
    }

    /** Checks a symmetric matrix. */
    static void shard(long rows, long cols) {
        if (rows < 0 || cols < 1) {
            throw new IllegalArgumentException(
                    ("a symmetric matrix of [%s, %s]: expected zero or more rows and at"
                                    + " least one column")
                            .formatted(rows, cols));
        }
    }

    static void splits(int splitsPerRank) {
        if (splitsPerRank < 1) {
            throw new IllegalArgumentException(
                    splitsPerRank + " splits per rank: expected at least one");
        }
    }

    /** Checks the number of chunks of all ranks, which have a word each in device memory. */
    static void deviceSplits(long rows, long cols, int ranks, int splitsPerRank) {
        splits(splitsPerRank);
        divisible(rows, cols, splitsPerRank);
        int most = Integer.MAX_VALUE / Integer.BYTES;
        if ((long) ranks * splitsPerRank > most) {
            throw new IllegalArgumentException(
                    "%d ranks x %d splits: expected at most %d chunks"
                            .formatted(ranks, splitsPerRank, most));
        }
    }

    static void longEnough(int size, int ranks, int splitsPerRank) {
        if (size < (long) ranks * splitsPerRank) {
            throw new IllegalArgumentException(
                    "progress for %s chunks: expected at least %s, %s ranks x %s splits"
                            .formatted(size, (long) ranks * splitsPerRank, ranks, splitsPerRank));
        }
    }

    /** Checks progress in the caller's memory. */
    static void words(MemorySegment words) {
        if (words.byteSize() < Integer.BYTES
                || words.byteSize() > (long) Integer.BYTES * Integer.MAX_VALUE
                || words.maxByteAlignment() < Integer.BYTES
                || words.isReadOnly()) {
            throw new IllegalArgumentException(
                    ("progress in %s%s bytes aligned to %s: expected 32-bit words that can be"
                                    + " written, one or more of them")
                            .formatted(
                                    words.isReadOnly() ? "read-only " : "",
                                    words.byteSize(),
                                    words.maxByteAlignment()));
        }
        allThreads("progress", words);
    }

    private static void allThreads(String name, MemorySegment memory) {
        if (!memory.isAccessibleBy(new Thread())) {
            throw new IllegalArgumentException(
                    name + " belongs to one thread: expected memory that all threads may use");
        }
    }

    /** Checks the memory for the product of gathered A and B, which fit; null for none. */
    static void product(Matrix c, Matrix a, Matrix b, boolean bTransposed) {
        if (c != null) {
            long n = bTransposed ? b.rows() : b.cols();
            DType type = DType.promote(a.dtype(), b.dtype());
            if (c.rows() != a.rows() || c.cols() != n || c.dtype() != type) {
                throw misfit(c.describe(), a.rows(), n, type);
            }
            allThreads("c", c.data());
        }
    }

    /** Checks the memory for a product on a device. */
    static void product(DeviceMatrix c, long rows, long n, DType type) {
        if (c != null && (c.rows() != rows || c.cols() != n || c.dtype() != type)) {
            throw misfit(c.describe(), rows, n, type);
        }
    }

    private static IllegalArgumentException misfit(String c, long rows, long n, DType type) {
        return new IllegalArgumentException(
                "c is %s: expected [%d, %d] %s".formatted(c, rows, n, type.label()));
    }

    static void contiguous(String name, Matrix matrix) {
        if (!matrix.isContiguous()) {
            throw gaps(name, matrix.describe(), matrix.rowPitch(), matrix.cols());
        }
    }

    private static IllegalArgumentException gaps(
            String name, String matrix, long rowPitch, long cols) {
        return new IllegalArgumentException(
                "%s %s is not contiguous: its rows are %d elements apart, expected %d"
                        .formatted(name, matrix, rowPitch, cols));
    }

    static void divisible(long rows, long cols, int splitsPerRank) {
        if (rows * cols % splitsPerRank != 0) {
            throw new IllegalArgumentException(
                    ("%s elements of [%s, %s] in %s splits: expected a number of splits that"
                                    + " divides them")
                            .formatted(rows * cols, rows, cols, splitsPerRank));
        }
    }

    /** Checks gathered A, whether the caller or a call made it. */
    static void gathered(String name, Matrix gathered, HelionShared<Matrix> shard) {
        long rows = shard.rows() * shard.group().size();
        if (gathered.rows() != rows
                || gathered.cols() != shard.cols()
                || gathered.dtype() != shard.dtype()) {
            throw misfit(
                    name,
                    gathered.describe(),
                    shard.group().size(),
                    shard.rows(),
                    shard.cols(),
                    shard.dtype());
        }
        contiguous(name, gathered);
        allThreads(name, gathered.data());
    }

    /** Checks gathered A on a device, for {@code ranks} shards like {@code shard}. */
    static void gathered(String name, DeviceMatrix gathered, DeviceMatrix shard, int ranks) {
        long rows = shard.rows() * ranks;
        if (gathered.rows() != rows
                || gathered.cols() != shard.cols()
                || gathered.dtype() != shard.dtype()) {
            throw misfit(
                    name, gathered.describe(), ranks, shard.rows(), shard.cols(), shard.dtype());
        }
        if (gathered.rowPitch() != gathered.cols()) {
            throw gaps(name, gathered.describe(), gathered.rowPitch(), gathered.cols());
        }
    }

    private static IllegalArgumentException misfit(
            String name, String gathered, int ranks, long rows, long cols, DType dtype) {
        String type = dtype.label();
        return new IllegalArgumentException(
                "%s is %s: expected [%d, %d] %s for %d shards of [%d, %d] %s"
                        .formatted(
                                name, gathered, rows * ranks, cols, type, ranks, rows, cols, type));
    }

    static void inner(long aCols, Matrix b, boolean transposed) {
        long k = transposed ? b.cols() : b.rows();
        long n = transposed ? b.rows() : b.cols();
        if (aCols != k) {
            throw new IllegalArgumentException(
                    "K is " + aCols + " in A and " + k + " in B [" + k + ", " + n + "]");
        }
    }

    /** Collective: refuses, on every rank, values that differ from the first rank's. */
    static void agreed(Fabric group, String what, long value) {
        long[] values = group.exchange(value);
        for (int r = 1; r < values.length; r++) {
            if (values[r] != values[0]) {
                throw new IllegalArgumentException(
                        "%s: %s on rank %s and %s on rank %s, expected the same on all"
                                .formatted(
                                        what,
                                        values[0],
                                        group.worldRank(0),
                                        values[r],
                                        group.worldRank(r)));
            }
        }
    }

    /** Ends the waits of peers with valid arguments if this rank refuses its own. */
    static <T> T orFail(Fabric group, Supplier<T> call) {
        group(group);
        try {
            return call.get();
        } catch (RuntimeException | Error e) {
            group.fail(e);
            throw e;
        }
    }
}
