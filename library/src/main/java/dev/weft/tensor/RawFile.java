package dev.weft.tensor;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.List;

/**
 * Files of nothing but elements: row after row, little-endian, no header. Type and shape come from
 * the caller, and the size must agree to the byte. Any thread may call it.
 */
final class RawFile {

    private static final byte[] NO_HEADER = {};

    private RawFile() {}

    /**
     * Maps the file read-only for as long as {@code arena} lives. Do not shorten it meanwhile.
     *
     * @throws IllegalArgumentException if it is missing or not exactly {@code rows x cols} elements
     */
    static Matrix read(Path path, DType dtype, long rows, long cols, Arena arena)
            throws IOException {
        try (InputFile file = InputFile.open(path)) {
            return file.map(file.rest(0, dtype, rows, cols), arena);
        }
    }

    /**
     * Finds the matrix without reading it; {@link MatrixFile#read} does that.
     *
     * @throws IllegalArgumentException if the file is missing or not exactly that many elements
     */
    static MatrixFile locate(Path path, DType dtype, long rows, long cols) throws IOException {
        try (InputFile file = InputFile.open(path)) {
            return file.rest(0, dtype, rows, cols);
        }
    }

    /** Replaces the file with the elements of {@code matrix}; it is whole or absent. */
    static void write(Path path, Matrix matrix) throws IOException {
        MatrixWriter.write(path, NO_HEADER, List.of(matrix));
    }
}
