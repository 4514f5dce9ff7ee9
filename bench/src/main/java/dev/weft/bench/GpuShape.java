package dev.weft.bench;

import java.util.List;

/**
 * A row of the bench's overlap table: M x K rows of A on so many ranks, times B of K x N.
 *
 * @param number of the row, from 1
 * @param pytorchSequentialUs what PyTorch took on an H200 with peers on the host, fp16 in and out:
 *     gather, then product
 * @param pytorchPipelinedUs the best of its pipelined ways, measured likewise
 */
record GpuShape(
        int number,
        int ranks,
        long m,
        long k,
        long n,
        double pytorchSequentialUs,
        double pytorchPipelinedUs) {

    /** All rows, in the order of their numbers. */
    static final List<GpuShape> ROWS =
            List.of(
                    new GpuShape(1, 2, 2048, 2048, 1024, 114, 144),
                    new GpuShape(2, 2, 4096, 4096, 4096, 513, 398),
                    new GpuShape(3, 2, 8192, 4096, 4096, 979, 704),
                    new GpuShape(4, 4, 8192, 4096, 4096, 1287, 1005),
                    new GpuShape(5, 8, 8192, 4096, 4096, 1463, 1154),
                    new GpuShape(6, 8, 16384, 4096, 4096, 2910, 2274),
                    new GpuShape(7, 8, 4096, 16384, 6656, 3319, 2294),
                    new GpuShape(8, 8, 8192, 4096, 14336, 2390, 1713),
                    new GpuShape(9, 4, 8192, 8192, 28672, 6870, 5929));

    static GpuShape row(int number) {
        return ROWS.get(number - 1);
    }

    double pytorchBestUs() {
        return Math.min(pytorchSequentialUs, pytorchPipelinedUs);
    }

    @Override
    public String toString() {
        return "W " + ranks + ", M " + m + " K " + k + " N " + n;
    }
}
