package dev.weft.examples.encoder;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The fp32 constants of a model in ONNX's format, by name. The file is a message of Protocol
 * Buffers: fields, each with a number and a kind, of which only the few that are needed here are
 * read. Weights of projections have no names of their own there ({@code onnx::MatMul_787}): they
 * are named after the node that multiplies with them, as {@code
 * encoder.layer.0.attention.self.query.weight}.
 */
final class OnnxFile {

    private static final int VARINT = 0;
    private static final int EIGHT_BYTES = 1;
    private static final int LENGTH = 2;
    private static final int FOUR_BYTES = 5;

    // The numbers of fields in onnx.proto.
    private static final int MODEL_GRAPH = 7;
    private static final int GRAPH_NODE = 1;
    private static final int GRAPH_INITIALIZER = 5;
    private static final int NODE_INPUT = 1;
    private static final int NODE_NAME = 3;
    private static final int NODE_KIND = 4;
    private static final int TENSOR_TYPE = 2;
    private static final int TENSOR_NAME = 8;
    private static final int TENSOR_BYTES = 9;
    private static final long TYPE_FP32 = 1;

    private final byte[] file;
    private final Map<String, Field> constants = new HashMap<>();

    /** A number, or the bytes from {@code at} up to {@code end}. */
    private record Field(int number, long value, int at, int end) {}

    OnnxFile(byte[] file) {
        this.file = file;
        Field graph = only(fields(0, file.length), MODEL_GRAPH);
        List<Field> parts = fields(graph.at(), graph.end());
        for (Field part : parts) {
            if (part.number() == GRAPH_INITIALIZER) {
                List<Field> tensor = fields(part.at(), part.end());
                if (only(tensor, TENSOR_TYPE).value() == TYPE_FP32) {
                    constants.put(text(only(tensor, TENSOR_NAME)), only(tensor, TENSOR_BYTES));
                }
            }
        }
        for (Field part : parts) {
            if (part.number() == GRAPH_NODE) {
                nameWeights(fields(part.at(), part.end()));
            }
        }
    }

    private void nameWeights(List<Field> node) {
        if (!text(only(node, NODE_KIND)).equals("MatMul")) {
            return;
        }
        List<Field> inputs = node.stream().filter(f -> f.number() == NODE_INPUT).toList();
        Field weights = constants.get(text(inputs.get(1)));
        if (weights != null) {
            String path = text(only(node, NODE_NAME)).replaceFirst("^/(.*)/MatMul$", "$1");
            constants.put(path.replace('/', '.') + ".weight", weights);
        }
    }

    /** A copy of a constant of so many elements. */
    MemorySegment constant(Arena arena, String name, long elements) {
        Field field = constants.get(name);
        long bytes = field == null ? -1 : field.end() - field.at();
        if (bytes != elements * Float.BYTES) {
            throw new IllegalArgumentException(
                    "the model's %s has %s bytes: expected %d fp32 values"
                            .formatted(name, field == null ? "no" : bytes, elements));
        }
        MemorySegment copy = arena.allocate(bytes, 64);
        return copy.copyFrom(MemorySegment.ofArray(file).asSlice(field.at(), bytes));
    }

    private String text(Field field) {
        return new String(file, field.at(), field.end() - field.at(), StandardCharsets.UTF_8);
    }

    private static Field only(List<Field> fields, int number) {
        return fields.stream()
                .filter(field -> field.number() == number)
                .findFirst()
                .orElseThrow(
                        () -> new IllegalArgumentException("an ONNX file without field " + number));
    }

    private List<Field> fields(int from, int to) {
        List<Field> fields = new ArrayList<>();
        int at = from;
        while (at < to) {
            long key = varint(at);
            at += varintBytes(at);
            int number = (int) (key >>> 3);
            switch ((int) key & 7) {
                case VARINT -> {
                    fields.add(new Field(number, varint(at), 0, 0));
                    at += varintBytes(at);
                }
                case LENGTH -> {
                    long length = varint(at);
                    at += varintBytes(at);
                    if (length < 0 || length > to - at) {
                        throw new IllegalArgumentException(
                                "an ONNX file with a field of %d bytes, %d of them there"
                                        .formatted(length, to - at));
                    }
                    fields.add(new Field(number, 0, at, at + (int) length));
                    at += (int) length;
                }
                case FOUR_BYTES -> at += 4;
                case EIGHT_BYTES -> at += 8;
                default ->
                        throw new IllegalArgumentException(
                                "not an ONNX file: a field of kind " + (key & 7));
            }
        }
        return fields;
    }

    /** Seven bits a byte, the lowest first; the last byte has no highest bit. */
    private long varint(int at) {
        long value = 0;
        int count = varintBytes(at);
        for (int i = 0; i < count; i++) {
            value |= (file[at + i] & 0x7FL) << (7 * i);
        }
        return value;
    }

    private int varintBytes(int at) {
        int count = 1;
        while (file[at + count - 1] < 0) {
            count++;
        }
        return count;
    }
}
