package dev.weft.cli.data;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles.Located;
import java.io.IOException;
import java.lang.foreign.Arena;

/** How many elements of a matrix are no numbers. */
record NotFinite(long nan, long infinite) {

    /** Elements that are looked at in one go. */
    private static final long BATCH = 1 << 18;

    /**
     * Reads the file once.
     *
     * @param type that its elements are converted to, which may overflow
     */
    static NotFinite in(Located file, DType type) throws IOException {
        long nan = 0;
        long infinite = 0;
        long most = Math.max(1, BATCH / Math.max(1, file.cols()));
        for (long row = 0; row < file.rows(); row += most) {
            long rows = Math.min(most, file.rows() - row);
            try (Arena arena = Arena.ofConfined()) {
                Matrix batch = Matrix.allocate(arena, file.dtype(), rows, file.cols());
                file.read(row, 0, batch);
                for (float value : batch.converted(arena, type).toArray()) {
                    if (Float.isNaN(value)) {
                        nan++;
                    } else if (Float.isInfinite(value)) {
                        infinite++;
                    }
                }
            }
        }
        return new NotFinite(nan, infinite);
    }
}
