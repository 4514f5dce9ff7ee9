package dev.weft.tensor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whatever happens to a file's bytes, it is read within its bounds or refused in one line. */
class FileMutationTest {

    private static final int CASES = 4000;

    private static final long[] EXTREMES = {
        -1, 0, 1, Long.MAX_VALUE, Long.MIN_VALUE, 1L << 32, Integer.MAX_VALUE, 100_000_000, 255
    };

    @TempDir private Path folder;

    @ParameterizedTest
    @ValueSource(strings = {"a.npy", "m.safetensors:w", "g.gguf:w", "a.bin"})
    void randomDamageIsReadOrRefused(String name) throws IOException {
        Path path = folder.resolve(name.replaceAll(":.*", ""));
        byte[] whole = goodFile(name, path);
        int refused = 0;
        for (int i = 0; i < CASES; i++) {
            long seed = 1_000_003L * name.hashCode() + i;
            Random random = new Random(seed);
            byte[] bytes = whole;
            for (int n = 1 + random.nextInt(3); n > 0; n--) {
                bytes = mutate(bytes, random);
            }
            replace(path, bytes);
            refused += tryToRead(name, "seed " + seed) ? 0 : 1;
        }
        assertTrue(refused > CASES / 5, "only " + refused + " were refused");
        assertTrue(refused < CASES, "none was read");
    }

    @Test
    void everyHeaderByteMayBecomeAnything() throws IOException {
        for (String name : new String[] {"a.npy", "m.safetensors:w", "g.gguf:w"}) {
            Path path = folder.resolve(name.replaceAll(":.*", ""));
            byte[] whole = goodFile(name, path);
            byte[] replacements = {0, (byte) 0xFF, '\'', '"', '{', '}', '9', '-', '(', '\n', '\\'};
            for (int at = 0; at < whole.length; at++) {
                byte[] bytes = whole.clone();
                for (byte replacement : replacements) {
                    bytes[at] = replacement;
                    replace(path, bytes);
                    tryToRead(name, "byte " + at + " set to " + replacement);
                }
            }
        }
    }

    /** A fresh file, because some file systems flush one that is cut and written again. */
    private static void replace(Path path, byte[] bytes) throws IOException {
        Files.delete(path);
        Files.write(path, bytes, StandardOpenOption.CREATE_NEW);
    }

    private byte[] goodFile(String name, Path path) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            Matrix matrix = Matrix.allocate(arena, DType.FP16, 3, 5);
            new NormalData(4, 4).fill(matrix);
            if (name.startsWith("m.")) {
                Map<String, Matrix> tensors = new LinkedHashMap<>();
                tensors.put("w", matrix);
                tensors.put("other", Matrix.copyOf(arena, new float[][] {{1, 2}}));
                SafetensorsFile.write(path, tensors);
            } else if (name.startsWith("g.")) {
                Matrix blocks = Matrix.allocate(arena, DType.FP32, 2, 256);
                new NormalData(4, 4).fill(blocks);
                new GgufWriter()
                        .texts("tokens", "a", "bc")
                        .tensor("other", matrix)
                        .tensor("w", QuantizedMatrix.ofB(arena, blocks, true, BlockType.Q4_K))
                        .write(path);
            } else {
                MatrixFiles.write(path.toString(), matrix);
            }
        }
        assertTrue(tryToRead(name, "undamaged"));
        return Files.readAllBytes(path);
    }

    /** Whether it could be read. Any other exception than the promised one ends the test. */
    private boolean tryToRead(String name, String context) throws IOException {
        String spec = folder + "/" + name;
        boolean raw = name.endsWith(".bin");
        try (Arena arena = Arena.ofConfined()) {
            Matrix matrix =
                    raw
                            ? MatrixFiles.read(spec, DType.FP16, 3, 5, arena)
                            : MatrixFiles.read(spec, null, -1, -1, arena);
            for (long row = 0; row < matrix.rows(); row++) {
                for (long col = 0; col < matrix.cols(); col++) {
                    matrix.get(row, col);
                }
            }
            return true;
        } catch (IllegalArgumentException refusal) {
            String message = refusal.getMessage();
            assertEquals(IllegalArgumentException.class, refusal.getClass(), context);
            assertEquals(1, message.lines().count(), context + ": " + message);
            assertTrue(message.startsWith(folder.toString()), context + ": " + message);
            assertFalse(message.length() > 600, context + ": " + message);
            return false;
        } catch (RuntimeException | IOException | Error e) {
            throw new AssertionError(context + " in " + name + " gave " + e, e);
        }
    }

    private static byte[] mutate(byte[] bytes, Random random) {
        if (bytes.length == 0) {
            return new byte[random.nextInt(20)];
        }
        byte[] result = bytes.clone();
        int at = random.nextInt(bytes.length);
        switch (random.nextInt(7)) {
            case 0 -> result[at] ^= (byte) (1 << random.nextInt(8));
            case 1 -> result[at] = (byte) random.nextInt();
            case 2 -> result = Arrays.copyOf(bytes, at);
            case 3 -> {
                result = Arrays.copyOf(bytes, bytes.length + 1 + random.nextInt(40));
                for (int i = bytes.length; i < result.length; i++) {
                    result[i] = (byte) random.nextInt();
                }
            }
            case 4 -> overwrite(result, random.nextInt(4) == 0 ? 0 : at, random);
            case 5 -> changeOneDigit(result, at, random);
            default -> System.arraycopy(bytes, at, result, 0, bytes.length - at);
        }
        return result;
    }

    private static void overwrite(byte[] bytes, int at, Random random) {
        long extreme = EXTREMES[random.nextInt(EXTREMES.length)];
        byte[] word = new byte[8];
        ByteBuffer.wrap(word).order(ByteOrder.LITTLE_ENDIAN).putLong(extreme);
        System.arraycopy(word, 0, bytes, at, Math.min(8, bytes.length - at));
    }

    private static void changeOneDigit(byte[] bytes, int from, Random random) {
        for (int i = from; i < bytes.length; i++) {
            if (bytes[i] >= '0' && bytes[i] <= '9') {
                bytes[i] = (byte) ('0' + random.nextInt(10));
                return;
            }
        }
    }
}
