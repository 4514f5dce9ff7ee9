package dev.weft.bench.cpu;

import dev.weft.tensor.DType;

/** What each rank gives in the item {@code gather}, as [rows, cols] of bf16. */
enum GatherSize {
    KIB_1(8, 64),
    KIB_16(32, 256),
    /** The first shape of the source's tests. */
    KIB_128(128, 512),
    MIB_1(128, 4096);

    static final DType TYPE = DType.BF16;

    private final int rows;
    private final int cols;

    GatherSize(int rows, int cols) {
        this.rows = rows;
        this.cols = cols;
    }

    int rows() {
        return rows;
    }

    int cols() {
        return cols;
    }

    int bytes() {
        return rows * cols * TYPE.bytes();
    }

    String describe() {
        String size = bytes() < 1 << 20 ? (bytes() >> 10) + " KiB" : (bytes() >> 20) + " MiB";
        return "%s each, [%s, %s] %s".formatted(size, rows, cols, TYPE.label());
    }
}
