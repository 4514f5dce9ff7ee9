package dev.weft.tensor;

import static dev.weft.tensor.Refusals.assertRefused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SafetensorsFileTest {

    private final Arena arena = Arena.ofAuto();

    @TempDir private Path folder;

    @Test
    void severalTensorsComeBackBitForBit() throws IOException {
        Map<String, Matrix> tensors = new LinkedHashMap<>();
        tensors.put("layer.0/weight", normal(DType.FP16, 3, 5));
        tensors.put("", normal(DType.BF16, 1, 1));
        tensors.put("a \"quoted\" \\ name: \u00e9\u4e2d\ud83d\ude00\n", normal(DType.FP32, 4, 2));
        tensors.put("empty", normal(DType.FP32, 0, 9));
        tensors.put("eight", normal(DType.E4M3, 7, 3));
        tensors.put("eight too", normal(DType.E5M2, 2, 5));
        tensors.put("view", normal(DType.BF16, 9, 9).block(1, 7, 2, 3));
        Path path = folder.resolve("several.safetensors");
        SafetensorsFile.write(path, tensors);
        for (Map.Entry<String, Matrix> tensor : tensors.entrySet()) {
            Matrix back = read(path, tensor.getKey());
            assertTrue(back.bitwiseEquals(tensor.getValue()), tensor.getKey());
        }
    }

    @Test
    void theBytesAreThoseOfTheFormat() throws IOException {
        Map<String, Matrix> tensors = new LinkedHashMap<>();
        tensors.put("b", Matrix.allocate(arena, DType.FP16, 1, 3));
        tensors.put("a", Matrix.copyOf(arena, new float[][] {{1, -2}}));
        Path path = folder.resolve("two.safetensors");
        SafetensorsFile.write(path, tensors);
        String json =
                "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                        + "\"b\":{\"dtype\":\"F16\",\"shape\":[1,3],\"data_offsets\":[8,14]}}";
        int padded = (json.length() + 7) / 8 * 8;
        ByteBuffer expected = ByteBuffer.allocate(8 + padded + 14).order(ByteOrder.LITTLE_ENDIAN);
        expected.putLong(padded).put(json.getBytes(StandardCharsets.US_ASCII));
        expected.put(" ".repeat(padded - json.length()).getBytes(StandardCharsets.US_ASCII));
        expected.putFloat(1).putFloat(-2);
        assertArrayEquals(expected.array(), Files.readAllBytes(path));
    }

    @Test
    void theSameTensorsGiveTheSameBytesInAnyOrder() throws IOException {
        Map<String, Matrix> tensors = new LinkedHashMap<>();
        tensors.put("x", normal(DType.FP16, 1, 1));
        tensors.put("w", normal(DType.BF16, 1, 1));
        tensors.put("v", normal(DType.FP32, 2, 2));
        tensors.put("u", normal(DType.FP32, 2, 2));
        Path one = folder.resolve("one.safetensors");
        Path two = folder.resolve("two.safetensors");
        SafetensorsFile.write(one, tensors);
        SafetensorsFile.write(two, new LinkedHashMap<>(tensors).reversed());
        assertArrayEquals(Files.readAllBytes(one), Files.readAllBytes(two));
    }

    @Test
    void foreignFilesWithMetadataAndOtherTypesAreRead() throws IOException {
        Path path =
                save(
                        "{\"__metadata__\":{\"format\":\"pt\",\"data_offsets\":\"x\"},"
                                + "\"ids\":{\"data_offsets\":[12,28],\"shape\":[2],"
                                + "\"dtype\":\"I64\"},"
                                + "\"w\":{\"extra\":[{\"deep\":[]}],\"dtype\":\"BF16\","
                                + "\"shape\":[2,3],\"data_offsets\":[0,12]}}   ",
                        28);
        assertEquals("[2, 3] bf16", read(path, "w").describe());
        refused(
                path,
                "ids",
                "tensor 'ids' of type I64: expected F32, F16, BF16, F8_E4M3 or F8_E5M2");
        refused(path, "__metadata__", "has no tensor '__metadata__'", "ids, w");
    }

    @Test
    void aMissingTensorListsSomeNames() throws IOException {
        Map<String, Matrix> tensors = new LinkedHashMap<>();
        for (int i = 10; i < 40; i++) {
            tensors.put("t" + i, normal(DType.FP32, 1, 1));
        }
        Path path = folder.resolve("many.safetensors");
        SafetensorsFile.write(path, tensors);
        refused(path, "T10", "has no tensor 'T10'", "t10, t11", "t19 and 20 more");
        SafetensorsFile.write(path, Map.of());
        refused(path, "a", "it has none");
        SafetensorsFile.write(path, Map.of("n\n" + "x".repeat(5000), normal(DType.FP32, 1, 1)));
        refused(path, "a", "n?xxx", "...");
        assertRefused(
                path,
                () -> SafetensorsFile.write(path, Map.of("__metadata__", tensors.get("t10"))),
                "cannot be named __metadata__");
    }

    @Test
    void shapesThatAreNoMatrixAreRefused() throws IOException {
        refused(save(tensor("F32", "[4]", "[0,16]"), 16), "a", "shape [4]", "2 dimensions");
        refused(save(tensor("F32", "[]", "[0,4]"), 4), "a", "shape []");
        refused(save(tensor("F32", "[1,2,2]", "[0,16]"), 16), "a", "shape [1, 2, 2]");
        refused(save(tensor("F32", "[2,3]", "[0,16]"), 16), "a", "16 bytes: expected 24");
        refused(save(tensor("F16", "[3037000500,3037000500]", "[0,16]"), 16), "a", "64-bit");
        refused(save(tensor("F32", "[-1,-4]", "[0,16]"), 16), "a", "gives -1 in the shape");
        refused(save(tensor("F32", "[2,1e1]", "[0,16]"), 16), "a", "VALUE_NUMBER_FLOAT");
        refused(save(tensor("F32", "[9223372036854775808,1]", "[0,16]"), 16), "a", "header");
        refused(save(tensor("F32", "[" + "1,".repeat(64) + "1]", "[0,4]"), 4), "a", "at most 64");
        refused(save(tensor("F32", "[0,4611686018427387904]", "[0,0]"), 0), "a", "64-bit");
    }

    @Test
    void offsetsMustCoverTheFileWithoutOverlapOrHole() throws IOException {
        String max = Long.toString(Long.MAX_VALUE);
        refused(save(tensor("F32", "[1,4]", "[0,16]"), 12), "a", "0 to 16", "end by 12");
        refused(save(tensor("F32", "[1,4]", "[0,16]"), 20), "a", "20 bytes", "accounts for 16");
        refused(save(tensor("F32", "[1,4]", "[4,20]"), 20), "a", "expected it to start at 0");
        refused(save(tensor("F32", "[1,4]", "[-16,0]"), 16), "a", "gives -16 in the offsets");
        refused(save(tensor("F32", "[1,4]", "[16,0]"), 16), "a", "bytes 16 to 0");
        refused(save(tensor("F32", "[1,4]", "[" + max + "," + max + "]"), 16), "a", max);
        refused(save(tensor("F32", "[1,4]", "[0]"), 16), "a", "data_offsets [begin, end]");
        refused(save(tensor("F32", "[1,4]", "[0,8,16]"), 16), "a", "data_offsets [begin, end]");
        String second = ",\"b\":{\"dtype\":\"F32\",\"shape\":[1,4],\"data_offsets\":";
        String first = tensor("F32", "[1,4]", "[0,16]");
        String open = first.substring(0, first.length() - 1);
        refused(save(open + second + "[8,24]}}", 24), "a", "'b' at bytes 8 to 24", "start at 16");
        refused(save(open + second + "[0,16]}}", 16), "a", "start at 16");
        refused(save(open + second + "[20,36]}}", 36), "a", "start at 16");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "   ",
                "[]",
                "7",
                "{",
                "{\"a\"",
                "{\"a\":7}",
                "{\"a\":{}}",
                "{\"a\":{\"dtype\":\"F32\"}}",
                "{\"a\":{\"dtype\":7,\"shape\":[1,1],\"data_offsets\":[0,4]}}",
                "{\"a\":{\"dtype\":\"F32\",\"shape\":7,\"data_offsets\":[0,4]}}",
                "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,[1]],\"data_offsets\":[0,4]}}",
                "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0,4]}}{}",
                "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0,4]}}x",
                "{'a':{}}",
                "{\"a\":{\"dtype\":\"\n\"}}",
                "{\"a\":{\"shape\":[1,",
                "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0,4]},"
                        + "\"a\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0,4]}}",
            })
    void damagedHeadersAreRefused(String json) throws IOException {
        refused(save(json, 4), "a");
    }

    @Test
    void aKeyThatIsThereTwiceIsRefusedAtAnyDepth() throws IOException {
        String entry = "\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0,4]";
        String whole = "\"a\":{" + entry + "}";
        assertEquals("[1, 1] fp32", read(save("{" + whole + "}", 4), "a").describe());
        for (String repeated :
                List.of(
                        "{\"a\":{\"dtype\":\"F16\"," + entry + "}}",
                        "{\"a\":{\"shape\":[2,1]," + entry + "}}",
                        "{\"a\":{\"data_offsets\":[0,8]," + entry + "}}",
                        "{\"a\":{\"x\":{\"y\":1,\"y\":2}," + entry + "}}",
                        "{\"__metadata__\":{},\"__metadata__\":{}," + whole + "}",
                        "{\"__metadata__\":{\"format\":\"pt\",\"format\":\"np\"}," + whole + "}",
                        "{" + whole + "," + whole + "}")) {
            refused(save(repeated, 4), "a", "damaged header: Duplicate field '");
        }
    }

    @Test
    void aHeaderThatDoesNotBeginWithItsBraceIsRefused() throws IOException {
        String json = tensor("F32", "[1,1]", "[0,4]");
        refused(save("\ufeff" + json, 4), "a", "begins with byte 239, not with { (byte 123)");
        refused(save(" " + json, 4), "a", "begins with byte 32");
        refused(save("", 4), "a", "begins with nothing");
    }

    @Test
    void deepNestingIsRefused() throws IOException {
        refused(save("{\"__metadata__\":" + "[".repeat(200_000), 4), "a", "damaged header");
        refused(save("{\"a\":{\"x\":" + "{\"y\":".repeat(200_000), 4), "a", "damaged header");
    }

    @Test
    void headerLengthsAreBoundedByTheFileAndTheFormat() throws IOException {
        byte[] bytes = Files.readAllBytes(save(tensor("F32", "[1,4]", "[0,16]"), 16));
        for (long length : new long[] {-1, Long.MIN_VALUE, Long.MAX_VALUE, 1L << 32, 1000}) {
            ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).putLong(0, length);
            Path path = Files.write(folder.resolve("length.safetensors"), bytes);
            refused(
                    path,
                    "a",
                    "header of " + Long.toUnsignedString(length) + " bytes",
                    "at most " + (bytes.length - 8));
        }
        Path large = folder.resolve("large.safetensors");
        try (FileChannel channel =
                FileChannel.open(
                        large,
                        StandardOpenOption.CREATE_NEW,
                        StandardOpenOption.SPARSE,
                        StandardOpenOption.WRITE)) {
            ByteBuffer length = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
            channel.write(length.putLong(0, 100_000_001));
            channel.write(ByteBuffer.allocate(1), 300_000_000);
        }
        refused(large, "a", "header of 100000001 bytes: expected at most 100000000");
    }

    @Test
    void filesThatEndTooSoonAreRefused() throws IOException {
        byte[] whole = Files.readAllBytes(save(tensor("F32", "[1,4]", "[0,16]"), 16));
        for (int length = 0; length < whole.length; length++) {
            Path path =
                    Files.write(folder.resolve("cut.safetensors"), Arrays.copyOf(whole, length));
            refused(path, "a");
        }
    }

    @Test
    void tensorsAreReadOnly() throws IOException {
        Path path = save(tensor("F32", "[2,2]", "[0,16]"), 16);
        Matrix matrix = read(path, "a");
        assertThrows(IllegalArgumentException.class, () -> matrix.set(0, 0, 1));
    }

    private void refused(Path path, String tensor, String... parts) {
        assertRefused(path, () -> read(path, tensor), parts);
    }

    private static String tensor(String dtype, String shape, String offsets) {
        return "{\"a\":{\"dtype\":\""
                + dtype
                + "\",\"shape\":"
                + shape
                + ",\"data_offsets\":"
                + offsets
                + "}}";
    }

    private Matrix normal(DType dtype, long rows, long cols) {
        Matrix matrix = Matrix.allocate(arena, dtype, rows, cols);
        new NormalData(8, 1).fill(matrix);
        return matrix;
    }

    /** A file with this header and as many zero bytes after it. */
    private Path save(String json, int dataBytes) throws IOException {
        byte[] text = json.getBytes(StandardCharsets.UTF_8);
        ByteBuffer bytes =
                ByteBuffer.allocate(8 + text.length + dataBytes).order(ByteOrder.LITTLE_ENDIAN);
        bytes.putLong(text.length).put(text);
        return Files.write(folder.resolve("case.safetensors"), bytes.array());
    }

    private Matrix read(Path path, String tensor) throws IOException {
        String spec = path + ":" + tensor;
        return MatrixFiles.read(spec, null, MatrixFiles.ANY, MatrixFiles.ANY, arena);
    }
}
