package dev.weft.compat;

import dev.weft.compat.Place.Size;
import dev.weft.cuda.Gpu;
import dev.weft.fabric.Fabric;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.util.function.Supplier;

/**
 * What the Helion calls refuse, with the actual numbers, on the CPU and on GPUs; {@link
 * ProgressMatmul} checks B on GPUs. Thread-safe; no GPU is needed.
 */
final class HelionChecks {

    private HelionChecks() {}

    static void require(boolean holds, String otherwise, Object... values) {
        if (!holds) {
            throw new IllegalArgumentException(otherwise.formatted(values));
        }
    }

    static void group(Fabric group) {
        require(group != null, "no group: expected the fabric of the ranks that gather");
    }

    static void sameGroup(Fabric group, Fabric other, String name) {
        require(
                group == other,
                "%s was made on another group, of %s ranks: expected the group of %s ranks that"
                        + " gathers",
                name,
                other.size(),
                group.size());
    }

    static void sameGpu(Gpu gpu, Gpu ofShared) {
        require(
                gpu == ofShared,
                "aShared lies on %s: expected %s, as the call says",
                ofShared,
                gpu);
    }

    static void rank(int rank, int ranks) {
        require(rank >= 0 && rank < ranks, "rank %s of a group of %s ranks", rank, ranks);
    }

    /** Checks a symmetric matrix. */
    static void shard(long rows, long cols) {
        require(
                rows >= 0 && cols >= 1,
                "a symmetric matrix of [%s, %s]: expected zero or more rows and at least one"
                        + " column",
                rows,
                cols);
    }

    static void splits(int splitsPerRank) {
        require(splitsPerRank >= 1, "%s splits per rank: expected at least one", splitsPerRank);
    }

    /** Checks the chunks of all ranks' shards [rows, cols], which have a word each. */
    static void splits(long rows, long cols, int ranks, int splitsPerRank) {
        splits(splitsPerRank);
        require(
                rows * cols % splitsPerRank == 0,
                "%s elements of [%s, %s] in %s splits: expected a number of splits that divides"
                        + " them",
                rows * cols,
                rows,
                cols,
                splitsPerRank);
        int most = Integer.MAX_VALUE / Integer.BYTES;
        require(
                (long) ranks * splitsPerRank <= most,
                "%d ranks x %d splits: expected at most %d chunks",
                ranks,
                splitsPerRank,
                most);
    }

    static void longEnough(int size, int ranks, int splitsPerRank) {
        long chunks = (long) ranks * splitsPerRank;
        require(
                size >= chunks,
                "progress for %s chunks: expected at least %s, %s ranks x %s splits",
                size,
                chunks,
                ranks,
                splitsPerRank);
    }

    /** Checks progress in the caller's memory. */
    static void words(MemorySegment words) {
        require(
                words.byteSize() >= Integer.BYTES
                        && words.byteSize() <= (long) Integer.BYTES * Integer.MAX_VALUE
                        && words.maxByteAlignment() >= Integer.BYTES
                        && !words.isReadOnly(),
                "progress in %s%s bytes aligned to %s: expected 32-bit words that can be written,"
                        + " one or more of them",
                words.isReadOnly() ? "read-only " : "",
                words.byteSize(),
                words.maxByteAlignment());
        allThreads("progress", words);
    }

    static void allThreads(String name, MemorySegment memory) {
        require(
                memory.isAccessibleBy(new Thread()),
                "%s belongs to one thread: expected memory that all threads may use",
                name);
    }

    /** Checks the memory for the product of gathered A and B, which fit; null for none. */
    static void product(Matrix c, Matrix a, Matrix b, boolean bTransposed) {
        if (c != null) {
            long n = bTransposed ? b.rows() : b.cols();
            product(Place.HOST.size(c), a.rows(), n, DType.promote(a.dtype(), b.dtype()));
            allThreads("c", c.data());
        }
    }

    /** Checks the memory for a product. */
    static void product(Size c, long rows, long n, DType type) {
        require(
                c.is(rows, n, type),
                "c is %s: expected [%d, %d] %s",
                c.text(),
                rows,
                n,
                type.label());
    }

    static void contiguous(String name, Size matrix) {
        require(
                matrix.rowPitch() == matrix.cols() || matrix.rows() <= 1,
                "%s %s is not contiguous: its rows are %d elements apart, expected %d",
                name,
                matrix.text(),
                matrix.rowPitch(),
                matrix.cols());
    }

    /** Checks gathered A, for {@code ranks} shards like {@code shard}. */
    static void gathered(String name, Size gathered, Size shard, int ranks) {
        String type = shard.dtype().label();
        require(
                gathered.is(shard.rows() * ranks, shard.cols(), shard.dtype()),
                "%s is %s: expected [%d, %d] %s for %d shards of [%d, %d] %s",
                name,
                gathered.text(),
                shard.rows() * ranks,
                shard.cols(),
                type,
                ranks,
                shard.rows(),
                shard.cols(),
                type);
        contiguous(name, gathered);
    }

    static void checkK(long aCols, Matrix b, boolean transposed) {
        long k = transposed ? b.cols() : b.rows();
        long n = transposed ? b.rows() : b.cols();
        require(aCols == k, "K is %s in A and %s in B [%s, %s]", aCols, k, k, n);
    }

    /** Collective: refuses, on every rank, values that differ from the first rank's. */
    static void agreed(Fabric group, String what, long value) {
        long[] values = group.exchange(value);
        for (int r = 1; r < values.length; r++) {
            require(
                    values[r] == values[0],
                    "%s: %s on rank %s and %s on rank %s, expected the same on all",
                    what,
                    values[0],
                    group.worldRank(0),
                    values[r],
                    group.worldRank(r));
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
