package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.console.ExitCode;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs on the user's own matrices. */
class OwnFilesRunTest {

    @TempDir Path folder;

    private Invocation run(String arguments) {
        List<String> command = Invocation.shortRun(arguments, folder.resolve("out"));
        return Invocation.of(command.toArray(String[]::new));
    }

    /** Writes an A [45, 31] and a B that lies transposed, [12, 31]; the options that name them. */
    static String writeOwnFiles(Path folder) throws IOException {
        Path a = folder.resolve("a.npy");
        Path b = folder.resolve("model.safetensors");
        try (Arena arena = Arena.ofConfined()) {
            Matrix left = Matrix.allocate(arena, DType.FP32, 45, 31);
            Matrix right = Matrix.allocate(arena, DType.BF16, 12, 31);
            new NormalData(3, 0).fill(left);
            new NormalData(3, 1).fill(right);
            MatrixFiles.write(a.toString(), left);
            MatrixFiles.write(b + ":w", right);
        }
        return " --a " + a + " --b " + b + ":w";
    }

    @Test
    void theUsersOwnFilesAreMultiplied() throws IOException {
        String files = writeOwnFiles(folder);
        Invocation run = run("-n 3 --transpose-b" + files);
        assertEquals(0, run.code(), run.err());
        assertTrue(run.out().contains("A [45, 31] fp32 in shards of 15,15,15"), run.out());
        Invocation mismatch = run("-n 3" + files);
        assertEquals(ExitCode.USAGE, mismatch.code());
        assertTrue(
                mismatch.err()
                        .contains(
                                "[12, 31] bf16: expected [31, any], so it fits with --transpose-b"),
                mismatch.err());
        run("-n 2 --a a.npz --b b.npy").assertRefused("numpy.load('a.npz')['NAME']");
    }

    /** What is done to the elements is said, and what is no number is counted. */
    @Test
    void theUsersOwnFilesAreConverted() throws IOException {
        Path a = folder.resolve("a.npy");
        Path b = folder.resolve("b.npy");
        try (Arena arena = Arena.ofConfined()) {
            Matrix left = Matrix.allocate(arena, DType.FP32, 4, 3);
            left.set(0, 1, Float.NaN);
            left.set(2, 2, Float.NEGATIVE_INFINITY);
            left.set(3, 2, 1e6f);
            MatrixFiles.write(a.toString(), left);
            MatrixFiles.write(b.toString(), Matrix.allocate(arena, DType.BF16, 3, 5));
        }
        String files = " --a " + a + " --b " + b;
        run("-n 2" + files)
                .assertPrints(
                        "A has 1 NaN and 1 infinite elements of 12",
                        "A [4, 3] fp32 in shards of 2,2 rows, B [3, 5] bf16");
        run("-n 2 --dtype fp16" + files)
                .assertPrints(
                        "A is fp32 in its file, rounded to fp16",
                        "A has 1 NaN and 2 infinite elements of 12",
                        "B is bf16 in its file, rounded to fp16",
                        "A [4, 3] fp16 in shards of 2,2 rows, B [3, 5] fp16",
                        "Verification PASSED");
        run("-n 2 --b-dtype fp32" + files)
                .assertPrints(
                        "B is bf16 in its file, converted to fp32",
                        "A [4, 3] fp32 in shards of 2,2 rows, B [3, 5] fp32");
    }

    /** Of columns, of rows and of whole Cs that the ranks have. */
    @Test
    void theWholeProductIsWrittenWhateverARankHasOfIt() throws IOException {
        String files = writeOwnFiles(folder);
        Path alone = folder.resolve("alone.npy");
        assertEquals(0, run("-n 1 --transpose-b" + files + " --c " + alone).code());
        Path c = folder.resolve("c.npy");
        for (String ranks :
                List.of(
                        "-n 5",
                        "-n 2 --rhs replicated",
                        "-n 3 --op matmul-reduce-scatter",
                        "-n 2 --op matmul-allreduce")) {
            Invocation run = run(ranks + " --transpose-b" + files + " --c " + c);
            assertEquals(0, run.code(), run.err());
            run.assertPrints("C [45, 12] fp32 is in " + c);
            assertEquals(-1, Files.mismatch(alone, c), ranks);
        }
        Invocation joined =
                run("-n 2 --rhs replicated --transpose-b --epilogue swiglu" + files + " --c " + c);
        assertEquals(0, joined.code(), joined.err());
        joined.assertPrints("C [45, 6] fp32 is in " + c);
        run("-n 2" + files + " --c c.npz").assertRefused("--c c.npz: expected FILE.npy");
        run("-n 2 --transpose-b" + files + " --c " + folder.resolve("a.npy"))
                .assertRefused("is that of --a, which is read");
    }

    /** What {@code numpy.save("b.npy", b.T)} writes is read as the matrix that it is. */
    @Test
    void aTransposedArrayOfNumPyIsRead() throws IOException {
        String rows = "-n 3" + writeOwnFiles(folder) + " --transpose-b --c " + folder + "/c.npy";
        assertEquals(0, run(rows).code());
        Path b = folder.resolve("b.npy");
        try (Arena arena = Arena.ofConfined()) {
            String stored = folder.resolve("model.safetensors") + ":w";
            MatrixFiles.write(
                    b.toString(), MatrixFiles.read(stored, null, MatrixFiles.ANY, 31, arena));
        }
        byte[] file = Files.readAllBytes(b);
        String header = new String(file, 0, 128, StandardCharsets.ISO_8859_1);
        String turned = header.replace("False", "True").replace("(12, 31), }", "(31, 12), } ");
        System.arraycopy(turned.getBytes(StandardCharsets.ISO_8859_1), 0, file, 0, header.length());
        Files.write(b, file);
        String a = " --a " + folder.resolve("a.npy") + " --b " + b;
        for (String ranks : List.of("-n 3", "-n 2 --op matmul-reduce-scatter")) {
            Invocation run = run(ranks + a + " --c " + folder + "/turned.npy");
            assertEquals(0, run.code(), run.err());
            Path c = folder.resolve("c.npy");
            assertEquals(-1, Files.mismatch(c, folder.resolve("turned.npy")), ranks);
        }
    }

    /** NumPy has no name for them, so the user says what the bytes are. */
    @Test
    void arraysOfEightBitTypesAreReadAsTheUserSays() throws IOException {
        Path a = folder.resolve("a.npy");
        Path b = folder.resolve("b.npy");
        try (Arena arena = Arena.ofConfined()) {
            for (Path file : List.of(a, b)) {
                Matrix matrix = Matrix.allocate(arena, DType.E4M3, 8, 8);
                new NormalData(3, 0).fill(matrix);
                MatrixFiles.write(file.toString(), matrix);
            }
        }
        String files = "-n 2 --a " + a + " --b " + b;
        run(files).assertRefused("a.npy: holds bytes ('|u1'), which may be e4m3 or e5m2");
        run(files + " --dtype fp8").assertRefused("say which (weft run: --dtype fp8 --a-dtype");
        Invocation run = run(files + " --dtype fp8 --a-dtype e4m3");
        assertEquals(0, run.code(), run.err());
        run.assertPrints("Verification PASSED");
        assertEquals(0, run(files + " --dtype fp8 --a-dtype float8_e5m2").code());
    }

    /** Which NaN a sum gives depends on the order of its operands, and means nothing. */
    @Test
    void aProductWithNaNPasses() throws IOException {
        Path a = folder.resolve("a.npy");
        Path b = folder.resolve("b.npy");
        try (Arena arena = Arena.ofConfined()) {
            Matrix left = Matrix.allocate(arena, DType.FP32, 12, 9);
            Matrix right = Matrix.allocate(arena, DType.FP32, 9, 7);
            new NormalData(3, 0).fill(left);
            new NormalData(3, 1).fill(right);
            for (int k = 0; k < 9; k++) {
                int bits = (k % 2 == 0 ? 0x7FC00000 : 0xFFC00000) + k;
                left.data().set(ValueLayout.JAVA_INT, left.offset(3, k), bits);
                left.set(5, k, k % 2 == 0 ? Float.POSITIVE_INFINITY : Float.NEGATIVE_INFINITY);
                left.set(7, k, k == 4 ? Float.NaN : 1);
            }
            MatrixFiles.write(a.toString(), left);
            MatrixFiles.write(b.toString(), right);
        }
        String files = " --a " + a + " --b " + b;
        for (String how :
                List.of(
                        "-n 3 --op matmul-reduce-scatter --order by-rank",
                        "-n 3 --op matmul-allreduce --order by-rank",
                        "-n 3 --op matmul-reduce-scatter --order by-rank-bf16",
                        "-n 3 --op matmul-allreduce",
                        "-n 2 --epilogue residual,gelu,bias",
                        "-n 2 --epilogue bias,silu --out-dtype bf16",
                        "-n 2 --epilogue swiglu --rhs replicated --out-dtype fp16")) {
            Invocation run = run(how + (how.contains("swiglu") ? "" : files));
            assertEquals(0, run.code(), how + " " + run.err());
        }
    }

    /** Parts as small as bf16's smallest numbers lose half the distance of those. */
    @Test
    void partsBelowTheNormalNumbersOfBf16Pass() throws IOException {
        Path a = folder.resolve("a.npy");
        Path b = folder.resolve("b.npy");
        try (Arena arena = Arena.ofConfined()) {
            Matrix left = Matrix.allocate(arena, DType.FP32, 12, 9);
            Matrix right = Matrix.allocate(arena, DType.FP32, 9, 7);
            NormalData normal = new NormalData(3, 0);
            normal.fill(left);
            normal.fill(right);
            for (long row = 0; row < 12; row++) {
                for (long col = 0; col < 9; col++) {
                    left.set(row, col, left.get(row, col) * 0x1p-66f);
                }
            }
            for (long row = 0; row < 9; row++) {
                for (long col = 0; col < 7; col++) {
                    right.set(row, col, right.get(row, col) * 0x1p-66f);
                }
            }
            MatrixFiles.write(a.toString(), left);
            MatrixFiles.write(b.toString(), right);
        }
        String sums = "-n 3 --op matmul-reduce-scatter --order by-rank-bf16";
        Invocation run = run(sums + " --a " + a + " --b " + b);
        assertEquals(0, run.code(), run.err());
    }
}
