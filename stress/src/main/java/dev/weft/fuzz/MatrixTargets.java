package dev.weft.fuzz;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The readers of matrices; every element of one that is accepted is read. For one thread. */
final class MatrixTargets {

    private static final long ROWS = 3;
    private static final long COLS = 5;

    private final Path folder;

    MatrixTargets(Path folder) {
        this.folder = folder;
    }

    List<Target> all() throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            List<byte[]> npy = new ArrayList<>();
            List<byte[]> raw = new ArrayList<>();
            Path npyFile = folder.resolve("seed.npy");
            Path rawFile = folder.resolve("seed.bin");
            for (DType type : DType.UNSCALED) {
                Matrix matrix = matrix(arena, type, ROWS);
                MatrixFiles.write(npyFile.toString(), matrix);
                npy.add(Files.readAllBytes(npyFile));
                if (type == DType.FP16) {
                    MatrixFiles.write(rawFile.toString(), matrix);
                    raw.add(Files.readAllBytes(rawFile));
                }
            }
            MatrixFiles.write(npyFile.toString(), matrix(arena, DType.FP32, 0));
            npy.add(Files.readAllBytes(npyFile));
            npy.add(ofVersion(npy.getFirst(), 2));
            npy.add(ofVersion(npy.getFirst(), 3));
            String rows = new String(npy.getFirst(), StandardCharsets.ISO_8859_1);
            npy.add(rows.replace("False,", "True, ").getBytes(StandardCharsets.ISO_8859_1));
            MatrixFiles.write(npyFile.toString(), matrix(arena, DType.E5M2, ROWS));
            String bytes = Files.readString(npyFile, StandardCharsets.ISO_8859_1);
            npy.add(bytes.replace("|u1", "<f1").getBytes(StandardCharsets.ISO_8859_1));
            Path tensors = folder.resolve("seed.safetensors");
            MatrixFiles.writeSafetensors(
                    tensors,
                    Map.of(
                            "w",
                            matrix(arena, DType.FP16, ROWS),
                            "x",
                            matrix(arena, DType.FP32, 2)));
            byte[] two = Files.readAllBytes(tensors);
            return List.of(
                    new Target("npy", npy, input -> read("in.npy", input, "")),
                    new Target(
                            "safetensors",
                            List.of(two, described(two)),
                            input -> read("in.safetensors", input, ":w")),
                    new Target(
                            "gguf",
                            List.of(Targets.resource("v2.gguf"), Targets.resource("v3.gguf")),
                            input -> read("in.gguf", input, ":w")),
                    new Target("raw", raw, input -> read("in.bin", input, "")));
        }
    }

    private static Matrix matrix(Arena arena, DType type, long rows) {
        Matrix matrix = Matrix.allocate(arena, type, rows, COLS);
        new NormalData(4, 4).fill(matrix);
        return matrix;
    }

    /** The same as NumPy writes it where the header is long or not in Latin letters. */
    private static byte[] ofVersion(byte[] first, int version) {
        byte[] wider = new byte[first.length + 2];
        System.arraycopy(first, 0, wider, 0, 8);
        wider[6] = (byte) version;
        wider[8] = first[8];
        wider[9] = first[9];
        System.arraycopy(first, 10, wider, 12, first.length - 10);
        return wider;
    }

    /** The same with free text about the file in its header. */
    private static byte[] described(byte[] plain) {
        String about = "\"__metadata__\":{\"format\":\"pt\"},";
        ByteBuffer from = ByteBuffer.wrap(plain).order(ByteOrder.LITTLE_ENDIAN);
        long header = from.getLong();
        ByteBuffer to =
                ByteBuffer.allocate(plain.length + about.length()).order(ByteOrder.LITTLE_ENDIAN);
        to.putLong(header + about.length()).put(from.get());
        return to.put(about.getBytes(StandardCharsets.US_ASCII)).put(from).array();
    }

    private long read(String name, byte[] input, String tensor) throws IOException {
        Path file = folder.resolve(name);
        // A fresh file each time: one that is mapped must not become shorter.
        Files.deleteIfExists(file);
        Files.write(file, input, StandardOpenOption.CREATE_NEW);
        boolean raw = name.endsWith(".bin");
        try (Arena arena = Arena.ofConfined()) {
            Matrix matrix =
                    MatrixFiles.read(
                            file + tensor,
                            raw ? DType.FP16 : null,
                            raw ? ROWS : MatrixFiles.ANY,
                            raw ? COLS : MatrixFiles.ANY,
                            arena);
            if (matrix.cols() > 0 && matrix.rows() > 0) {
                for (long row = 0; row < matrix.rows(); row++) {
                    for (long col = 0; col < matrix.cols(); col++) {
                        matrix.get(row, col);
                    }
                }
            }
            // Elements of 2 bits and their scales are widened to 32.
            return matrix.elementBytes() / (name.endsWith(".gguf") ? 16 : 1);
        }
    }
}
