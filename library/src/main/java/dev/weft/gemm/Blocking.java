package dev.weft.gemm;

import dev.weft.gemm.code.Tiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The block sizes of a product, chosen so that data that is read again is in a near cache. Each
 * size can be set by a system property: {@code weft.gemm.depth}, {@code weft.gemm.rows}, {@code
 * weft.gemm.cols}. No size changes a bit of any product.
 *
 * @param depth columns of A, and rows of B, that a kernel sums at a time
 * @param rows rows of A that are packed at a time
 * @param cols columns of C whose sums are kept between two depths
 * @param cacheBytes the size up to which a B is assumed to stay in a near cache
 */
record Blocking(int depth, int rows, int cols, long cacheBytes) {

    /** Rows are packed again for each. Measured with 504 rows: 2048 1.00, 1024 0.99, 512 0.96. */
    private static final int COLS = 2048;

    /**
     * All of B is read once per block of rows, from a far cache. Measured there, only kernels: 126
     * rows 0.92 of 504, 252 rows 0.97; 756 rows, more than half of the cache, 0.99.
     */
    private static final int MOST_ROWS = 1024;

    private static final long L2_BYTES_IF_UNKNOWN = 512 * 1024;
    private static final Path CACHES = Path.of("/sys/devices/system/cpu/cpu0/cache");

    /** Packed rows fill half of the second-level cache; panels of B and sums use the rest. */
    static Blocking of(Tiles tiles) {
        long half = l2Bytes() / 2;
        int depth = property("weft.gemm.depth", tiles.depth(), 8192);
        int tileRows = tiles.rows();
        // Rounded up: half of a cache is a power of two, and so are many shards.
        long count = Math.ceilDiv(half, tiles.tileBytes(depth));
        long rows = Math.clamp(count * tileRows, tileRows, MOST_ROWS);
        return new Blocking(
                depth,
                property("weft.gemm.rows", (int) rows, 1 << 16),
                property("weft.gemm.cols", COLS, 1 << 16),
                half);
    }

    /** Whether B is too large to stay in a near cache. */
    boolean isFar(PackedB b) {
        return b.bytes() > cacheBytes;
    }

    /** The size of the fewest equal blocks of at most {@code max}: no small rest is left. */
    static int even(long total, int max, int quantum) {
        long blocks = Math.max(1, Math.ceilDiv(total, max));
        return Math.max(quantum, roundUp((int) Math.ceilDiv(total, blocks), quantum));
    }

    static int roundUp(int value, int quantum) {
        return Math.ceilDiv(value, quantum) * quantum;
    }

    private static long l2Bytes() {
        for (int index = 0; index < 8; index++) {
            Path cache = CACHES.resolve("index" + index);
            try {
                if (Files.readString(cache.resolve("level")).strip().equals("2")) {
                    return bytes(Files.readString(cache.resolve("size")).strip());
                }
            } catch (IOException e) {
                // Not Linux, or a machine that does not report it: the loop ends with the usual
                // size.
                break;
            }
        }
        return L2_BYTES_IF_UNKNOWN;
    }

    /** The bytes of a size in the kernel's notation: {@code 2048K}. */
    static long bytes(String size) {
        return size.matches("[0-9]{1,9}K")
                ? Long.parseLong(size.substring(0, size.length() - 1)) * 1024
                : L2_BYTES_IF_UNKNOWN;
    }

    private static int property(String name, int otherwise, int most) {
        Integer value = Integer.getInteger(name);
        if (value == null) {
            return otherwise;
        }
        if (value < 1 || value > most) {
            throw new IllegalArgumentException(
                    "property " + name + " is " + value + ": expected 1 to " + most);
        }
        return value;
    }
}
