package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.report.RecordReader;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import dev.weft.tensor.QuantizedMatrix;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whole runs with a B in blocks. */
class BlockRunTest extends ShortRuns {

    private final Arena arena = Arena.ofAuto();

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-n 2 --gm 33 --gk 96 --gn 30 --b-dtype q8_0 --algorithm ring",
                "-n 3 --shards 20,0,11 --gk 512 --gn 50 --b-dtype q4_k --rhs replicated"
                        + " --dtype bf16 --out-dtype fp16",
                "-n 2 --gm 12 --gk 64 --gn 36 --b-dtype q4_0 --transpose-b --dtype fp32 --engine"
                        + " scalar --epilogue bias,swiglu --rhs replicated",
                "-n 4 --groups 2 --gm 20 --gk 256 --gn 9 --b-dtype q4_k --data seed19",
                "--op matmul-reduce-scatter -n 3 --gm 31 --gk 96 --gn 17 --b-dtype q4_0",
                "--op matmul-reduce-scatter -n 2 --gm 31 --gk 1280 --gn 17 --b-dtype q8_0"
                        + " --order by-rank",
                "--op matmul-allreduce -n 3 --gm 19 --k-parts 512,0,256 --gn 40 --b-dtype q4_k"
                        + " --algorithm chain --transpose-b",
                "--op matmul-allreduce -n 3 --gm 19 --gk 768 --gn 40 --b-dtype q4_k --algorithm"
                        + " direct --epilogue swiglu",
                "-n 2 --gm 20 --gk 64 --gn 30 --b-dtype Q8_0 --launcher processes"
            })
    void manyKindsPass(String arguments) {
        Invocation run = run(arguments);
        assertEquals(0, run.code(), run.err() + run.out());
        run.assertPrints("Verification PASSED.", "product bitwise equal to the unfused one");
    }

    /** However many ranks there are, C has the same bytes. */
    @Test
    void theNumberOfRanksDoesNotMatter() throws IOException {
        byte[] first = null;
        for (String how :
                new String[] {
                    "-n 1",
                    "-n 3",
                    "-n 2 --op matmul-allreduce --algorithm direct",
                    "-n 3 --op matmul-allreduce --algorithm chain --engine scalar"
                }) {
            Path gguf = gguf(BlockType.Q4_K);
            Path c = folder.resolve("c.npy");
            Invocation run =
                    run(
                            "%s --a %s --b %s:w --transpose-b --b-dtype q4_k --c %s"
                                    .formatted(how, a(), gguf, c));
            assertEquals(0, run.code(), run.err() + run.out());
            byte[] bytes = Files.readAllBytes(c);
            first = first == null ? bytes : first;
            assertEquals(-1, java.util.Arrays.mismatch(first, bytes), how);
            Files.delete(c);
        }
    }

    /** Blocks of a file are multiplied as they are, or dequantized, or quantized anew. */
    @Test
    void aModelsMatrixIsAFactor() throws IOException {
        Path gguf = gguf(BlockType.Q4_0);
        String files =
                "-n 2 --a %s --b %s:w --transpose-b --json %s/r.json ".formatted(a(), gguf, folder);
        run(files.strip()).assertPrints("B is q4_0 in its file, converted to fp32", "PASSED");
        assertEquals("fp32", RecordReader.read(folder.resolve("r.json")).run().problem().bDtype());
        Invocation same = run(files + "--b-dtype q4_0");
        same.assertPrints("Verification PASSED.", "B [512, 24] q4_0");
        assertTrue(!same.out().contains("converted"), same.out());
        assertEquals("q4_0", RecordReader.read(folder.resolve("r.json")).run().problem().bDtype());
        run(files + "--b-dtype q8_0")
                .assertPrints("B is q4_0 in its file", "B is quantized to q8_0", "PASSED");
    }

    private Path a() throws IOException {
        Path path = folder.resolve("a.npy");
        Matrix a = Matrix.allocate(arena, DType.FP16, 15, 512);
        Random random = new Random(6);
        a.fill(random::nextGaussian);
        MatrixFiles.write(path.toString(), a);
        return path;
    }

    /** A file with one tensor of [24, 512]. */
    private Path gguf(BlockType type) throws IOException {
        Matrix b = Matrix.allocate(arena, DType.FP32, 24, 512);
        Random random = new Random(7);
        b.fill(random::nextGaussian);
        ByteBuffer header = ByteBuffer.allocate(96).order(ByteOrder.LITTLE_ENDIAN);
        header.put("GGUF".getBytes(StandardCharsets.US_ASCII)).putInt(3).putLong(1).putLong(0);
        header.putLong(1).put((byte) 'w').putInt(2).putLong(512).putLong(24);
        header.putInt(type == BlockType.Q4_0 ? 2 : 12).putLong(0);
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.write(header.array(), 0, Math.ceilDiv(header.position(), 32) * 32);
        QuantizedMatrix blocks = QuantizedMatrix.ofB(arena, b, true, type);
        all.writeBytes(blocks.data().toArray(ValueLayout.JAVA_BYTE));
        Path path = folder.resolve("model.gguf");
        Files.write(path, all.toByteArray());
        return path;
    }
}
