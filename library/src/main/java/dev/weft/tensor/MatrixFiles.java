package dev.weft.tensor;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * Matrices in files, named as users name them: {@code a.npy}, {@code model.safetensors:tensor},
 * {@code model.gguf:tensor}, and anything else is raw elements. A float64 {@code .npy} is rounded
 * to fp32 as it is read, and so are the blocks of a GGUF file. A file that is missing, damaged or
 * not what the caller expects is an {@link IllegalArgumentException} of one line that names it;
 * {@link IOException} is left for a machine that fails. Any thread may call it.
 */
public final class MatrixFiles {

    /** The number of rows or columns is whatever the file has. */
    public static final long ANY = -1;

    private static final String NPY = ".npy";
    private static final String NPZ = ".npz";
    private static final String SAFETENSORS = ".safetensors";
    private static final String GGUF = ".gguf";

    private MatrixFiles() {}

    /**
     * Maps a matrix read-only for as long as {@code arena} lives; float64 and blocks, which are
     * rounded to fp32, and Fortran order are read instead. Do not shorten the file meanwhile: the
     * system ends a process that touches what is no longer there. Replacing it, as every write of
     * this package does, is harmless. {@link #locate} is for files that others may shorten.
     *
     * @param spec a path, for safetensors and GGUF followed by a colon and the tensor's name
     * @param dtypeOrNull the expected type; required for a raw file, and for an .npy file of bytes
     * @param rowsOrAny the expected rows, or {@link #ANY}; required for a raw file
     * @param colsOrAny the expected columns, likewise
     */
    public static Matrix read(
            String spec, DType dtypeOrNull, long rowsOrAny, long colsOrAny, Arena arena)
            throws IOException {
        Located located = locate(spec, dtypeOrNull, rowsOrAny, colsOrAny);
        try (InputFile file = InputFile.open(located.path())) {
            if (file.sizeBytes() != located.fileBytes()) {
                throw file.changed(located.fileBytes(), file.sizeBytes());
            }
            boolean asIs =
                    !located.isFloat64() && !located.isFortranOrder() && located.blocks() == null;
            return asIs ? file.map(located, arena) : located.read(arena);
        }
    }

    /**
     * Finds a matrix without reading it; {@link Located#read} reads it. The parameters are those of
     * {@link #read}.
     */
    public static Located locate(String spec, DType dtypeOrNull, long rowsOrAny, long colsOrAny)
            throws IOException {
        if (rowsOrAny < ANY || colsOrAny < ANY) {
            throw new IllegalArgumentException(
                    """
                    %s: asked for %s x %s elements: expected sizes of zero or more, or %s for \
                    any\
                    """
                            .formatted(spec, rowsOrAny, colsOrAny, ANY));
        }
        Located matrix = locateUnchecked(spec, dtypeOrNull, rowsOrAny, colsOrAny);
        if ((dtypeOrNull != null && dtypeOrNull != matrix.dtype())
                || (rowsOrAny != ANY && rowsOrAny != matrix.rows())
                || (colsOrAny != ANY && colsOrAny != matrix.cols())) {
            throw new IllegalArgumentException(
                    "%s: holds %s: expected [%s, %s] %s"
                            .formatted(
                                    spec,
                                    matrix.describe(),
                                    size(rowsOrAny),
                                    size(colsOrAny),
                                    dtypeOrNull == null ? "of any type" : dtypeOrNull.label()));
        }
        return matrix;
    }

    private static String size(long sizeOrAny) {
        return sizeOrAny == ANY ? "any" : Long.toString(sizeOrAny);
    }

    private static Located locateUnchecked(
            String spec, DType dtypeOrNull, long rowsOrAny, long colsOrAny) throws IOException {
        refuseArchive(spec);
        boolean npy = spec.endsWith(NPY);
        int colon = npy ? -1 : tensorColon(spec);
        boolean described = dtypeOrNull != null && rowsOrAny != ANY && colsOrAny != ANY;
        if (!npy && colon < 0 && !described) {
            throw new IllegalArgumentException(
                    spec
                            + ": a raw file does not say its type and shape: give dtype, rows and"
                            + " columns, or use .npy, .safetensors or .gguf");
        }
        try (InputFile file =
                InputFile.open(Path.of(colon < 0 ? spec : spec.substring(0, colon)))) {
            if (npy) {
                return NpyFile.locate(file, dtypeOrNull);
            }
            if (colon < 0) {
                return file.rest(0, dtypeOrNull, false, false, rowsOrAny, colsOrAny);
            }
            String tensor = spec.substring(colon + 1);
            return spec.startsWith(GGUF, colon - GGUF.length())
                    ? GgufFile.locate(file, tensor)
                    : SafetensorsFile.locate(file, tensor);
        }
    }

    /** Writes {@code matrix} in the format that {@code spec} names, all of it or no file at all. */
    public static void write(String spec, Matrix matrix) throws IOException {
        refuseArchive(spec);
        int colon = tensorColon(spec);
        if (colon >= 0 && spec.startsWith(GGUF, colon - GGUF.length())) {
            throw new IllegalArgumentException(
                    spec + ": GGUF files are only read: expected .npy or .safetensors");
        }
        if (spec.endsWith(NPY)) {
            NpyFile.write(Path.of(spec), matrix);
        } else if (colon >= 0) {
            SafetensorsFile.write(
                    Path.of(spec.substring(0, colon)), Map.of(spec.substring(colon + 1), matrix));
        } else {
            MatrixWriter.write(Path.of(spec), new byte[0], List.of(matrix));
        }
    }

    /** Writes several named tensors into one safetensors file, all of it or no file at all. */
    public static void writeSafetensors(Path path, Map<String, Matrix> tensors) throws IOException {
        SafetensorsFile.write(path, tensors);
    }

    private static void refuseArchive(String spec) {
        if (spec.endsWith(NPZ)) {
            throw new IllegalArgumentException(
                    spec
                            + ": is an archive of NumPy arrays: expected one array in an .npy file,"
                            + " saved with numpy.save('a.npy', numpy.load('a.npz')['NAME'])");
        }
    }

    /** Where the tensor's name is split off, or -1 if this is no file of several tensors. */
    private static int tensorColon(String spec) {
        int first = -1;
        for (String suffix : List.of(SAFETENSORS, GGUF)) {
            int at = spec.indexOf(suffix + ":");
            int colon = at + suffix.length();
            if (at >= 0 && (first < 0 || colon < first)) {
                first = colon;
            }
            if (first < 0 && spec.endsWith(suffix)) {
                throw new IllegalArgumentException(
                        spec + ": say which tensor, as in " + spec + ":NAME");
            }
        }
        return first;
    }

    /**
     * A matrix in a file, found by {@link MatrixFiles#locate}. All or some of its elements are
     * copied into the caller's memory, so later changes of the file do not matter. Thread-safe.
     *
     * @param position the offset of its first element
     * @param fileBytes the length of the file when it was located
     * @param dtype fp32 for float64 and blocks, which are rounded to it when they are read
     * @param isFloat64 whether the file's elements have 64 bits
     * @param isFortranOrder whether the file has column after column
     * @param blocks what the file's rows consist of; null for elements
     */
    public record Located(
            Path path,
            long position,
            long fileBytes,
            DType dtype,
            boolean isFloat64,
            boolean isFortranOrder,
            long rows,
            long cols,
            BlockType blocks) {

        /** A matrix of elements. */
        public Located(
                Path path,
                long position,
                long fileBytes,
                DType dtype,
                boolean isFloat64,
                boolean isFortranOrder,
                long rows,
                long cols) {
            this(path, position, fileBytes, dtype, isFloat64, isFortranOrder, rows, cols, null);
        }

        private static final ValueLayout.OfDouble FLOAT64 =
                ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

        /** If only some columns are wanted, rows are read up to this size at a time. */
        private static final long STAGING_BYTES = 1 << 20;

        /**
         * Reads the whole matrix into memory that lives as long as {@code arena}.
         *
         * @throws IOException if the file has changed
         */
        public Matrix read(Arena arena) throws IOException {
            Matrix matrix = Matrix.allocate(arena, dtype, rows, cols);
            read(0, 0, matrix);
            return matrix;
        }

        /**
         * Reads the block that begins at a row and a column into {@code target}.
         *
         * @throws IOException if the file has changed
         */
        public void read(long firstRow, long firstCol, Matrix target) throws IOException {
            if (target.dtype() != dtype
                    || firstRow < 0
                    || firstCol < 0
                    || firstRow > rows - target.rows()
                    || firstCol > cols - target.cols()) {
                throw new IllegalArgumentException(
                        "%s: holds %s: asked for %s from row %s, column %s"
                                .formatted(
                                        path, describe(), target.describe(), firstRow, firstCol));
            }
            try (InputFile file = InputFile.open(path)) {
                if (file.sizeBytes() != fileBytes) {
                    throw file.changed(fileBytes, file.sizeBytes());
                }
                if (target.elementBytes() > 0) {
                    read(file, firstRow, firstCol, target);
                }
            } catch (IllegalArgumentException e) {
                // It was readable when it was located.
                throw new IOException(e.getMessage(), e);
            }
        }

        private int bytesOfElement() {
            return isFloat64 ? Double.BYTES : dtype.bytes();
        }

        private void read(InputFile file, long firstRow, long firstCol, Matrix target)
                throws IOException {
            if (isFortranOrder) {
                readColumns(file, firstRow, firstCol, target);
                return;
            }
            long rowBytes = blocks == null ? cols * bytesOfElement() : blocks.rowBytes(cols);
            boolean asIs =
                    !isFloat64
                            && blocks == null
                            && target.isContiguous()
                            && target.data().isNative();
            if (asIs && target.cols() == cols) {
                MemorySegment elements = target.data().asSlice(0, target.elementBytes());
                file.read(position + firstRow * rowBytes, elements);
                return;
            }
            long batchRows = Math.clamp(STAGING_BYTES / rowBytes, 1, target.rows());
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment staging = arena.allocate(batchRows * rowBytes, Double.BYTES);
                for (long row = 0; row < target.rows(); row += batchRows) {
                    long count = Math.min(batchRows, target.rows() - row);
                    MemorySegment elements = staging.asSlice(0, count * rowBytes);
                    file.read(position + (firstRow + row) * rowBytes, elements);
                    Matrix into = target.rows(row, count);
                    if (isFloat64) {
                        round(elements, firstCol, into);
                    } else if (blocks != null) {
                        new QuantizedMatrix(elements, blocks, count, cols)
                                .dequantize(firstCol, into);
                    } else {
                        into.copyFrom(
                                Matrix.of(elements, dtype, count, cols)
                                        .block(0, count, firstCol, target.cols()));
                    }
                }
            }
        }

        /** Whole columns many at a time, parts of columns one at a time. */
        private void readColumns(InputFile file, long firstRow, long firstCol, Matrix target)
                throws IOException {
            long size = bytesOfElement();
            long columnBytes = target.rows() * size;
            boolean whole = target.rows() == rows;
            long batchCols = whole ? Math.clamp(STAGING_BYTES / columnBytes, 1, target.cols()) : 1;
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment staging = arena.allocate(batchCols * columnBytes, Double.BYTES);
                for (long col = 0; col < target.cols(); col += batchCols) {
                    long count = Math.min(batchCols, target.cols() - col);
                    MemorySegment elements = staging.asSlice(0, count * columnBytes);
                    file.read(position + ((firstCol + col) * rows + firstRow) * size, elements);
                    transpose(elements, target.block(0, target.rows(), col, count));
                }
            }
        }

        private void transpose(MemorySegment elements, Matrix into) {
            long at = 0;
            for (long col = 0; col < into.cols(); col++) {
                for (long row = 0; row < into.rows(); row++) {
                    long to = into.offset(row, col);
                    if (isFloat64) {
                        into.set(row, col, (float) elements.get(FLOAT64, at));
                    } else {
                        switch (dtype) {
                            case FP32 ->
                                    into.data().set(DType.INT, to, elements.get(DType.INT, at));
                            case FP16, BF16 ->
                                    into.data().set(DType.SHORT, to, elements.get(DType.SHORT, at));
                            case E4M3, E5M2 ->
                                    into.data()
                                            .set(
                                                    ValueLayout.JAVA_BYTE,
                                                    to,
                                                    elements.get(ValueLayout.JAVA_BYTE, at));
                        }
                    }
                    at += bytesOfElement();
                }
            }
        }

        /** To nearest, ties to even, as every conversion of Java to float. */
        private void round(MemorySegment elements, long firstCol, Matrix into) {
            for (long row = 0; row < into.rows(); row++) {
                for (long col = 0; col < into.cols(); col++) {
                    long at = (row * cols + firstCol + col) * Double.BYTES;
                    into.set(row, col, (float) elements.get(FLOAT64, at));
                }
            }
        }

        /** The type of the file's elements: {@code float64}, or a label of the other types. */
        public String typeInFile() {
            if (blocks != null) {
                return blocks.label();
            }
            return isFloat64 ? "float64" : dtype.label();
        }

        /**
         * Reads the whole matrix, whose rows are blocks, as it is in the file.
         *
         * @throws IOException if the file has changed
         */
        public QuantizedMatrix readBlocks(Arena arena) throws IOException {
            if (blocks == null) {
                throw new IllegalArgumentException(
                        "%s: holds %s: expected blocks".formatted(path, describe()));
            }
            QuantizedMatrix matrix = QuantizedMatrix.allocate(arena, blocks, rows, cols);
            try (InputFile file = InputFile.open(path)) {
                if (file.sizeBytes() != fileBytes) {
                    throw file.changed(fileBytes, file.sizeBytes());
                }
                file.read(position, matrix.data());
            } catch (IllegalArgumentException e) {
                // It was readable when it was located.
                throw new IOException(e.getMessage(), e);
            }
            matrix.firstNotFinite()
                    .ifPresent(
                            where -> {
                                throw new IllegalArgumentException(
                                        "%s: holds %s, in which %s has a scale that is infinite or NaN: expected finite ones"
                                                .formatted(path, describe(), where));
                            });
            return matrix;
        }

        /** Shape and type, as in {@link Matrix#describe}. */
        public String describe() {
            return "[" + rows + ", " + cols + "] " + typeInFile();
        }
    }
}
