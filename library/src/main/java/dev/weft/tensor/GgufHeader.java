package dev.weft.tensor;

import dev.weft.process.SafeText;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/**
 * Reads the start of a GGUF file, versions 2 and 3: pairs of keys and values, most of which are
 * passed over, and the directory of tensors. Nothing is allocated by a count that the file could
 * not hold. For one thread.
 *
 * <pre>
 * "GGUF", version (4 bytes), tensors (8), pairs (8)
 * pair:   key, type (4), value
 * tensor: name, dimensions (4), each of them (8), the fastest first, type (4), offset (8)
 * text:   length (8), UTF-8
 * </pre>
 */
final class GgufHeader {

    private static final int MAGIC = 0x46554747;
    private static final String ALIGNMENT = "general.alignment";
    private static final int DEFAULT_ALIGNMENT = 32;
    private static final int MAX_ALIGNMENT = 1 << 20;
    private static final int MAX_DIMENSIONS = 4;
    private static final int MAX_NAME_BYTES = 64;
    private static final int MAX_KEY_BYTES = 65535;
    private static final int MAX_NESTED = 8;

    private static final int UINT32 = 4;
    private static final int STRING = 8;
    private static final int ARRAY = 9;

    /** Bytes of a value of each type; 0 for texts and arrays, which say their length. */
    private static final int[] VALUE_BYTES = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

    /** What is read at a time. */
    private static final int CHUNK_BYTES = 1 << 16;

    /**
     * A tensor in the directory.
     *
     * @param shape the fastest dimension first; empty for a single number
     * @param type its number in the format
     * @param offset relative to the first tensor, in bytes
     */
    record Entry(long[] shape, int type, long offset) {}

    private final InputFile file;
    private final Map<String, Entry> tensors = new LinkedHashMap<>();
    private int alignment = DEFAULT_ALIGNMENT;
    private ByteBuffer chunk = ByteBuffer.allocate(0).order(ByteOrder.LITTLE_ENDIAN);
    private long chunkEnd;

    private GgufHeader(InputFile file) {
        this.file = file;
    }

    static GgufHeader parse(InputFile file) throws IOException {
        GgufHeader header = new GgufHeader(file);
        header.parse();
        return header;
    }

    Map<String, Entry> tensors() {
        return tensors;
    }

    /** Offsets of tensors are multiples of this. */
    int alignment() {
        return alignment;
    }

    /** Where the first tensor begins. */
    long dataStart() {
        return Math.ceilDiv(position(), alignment) * alignment;
    }

    private void parse() throws IOException {
        if (number(4, "magic number") != MAGIC) {
            throw file.refusal("is not a GGUF file: it does not begin with GGUF");
        }
        long version = number(4, "version");
        if (version != 2 && version != 3) {
            String order = Integer.reverseBytes((int) version) == 3 ? ", big-endian" : "";
            throw file.refusal(
                    "is GGUF of version %s%s: expected 2 or 3, little-endian"
                            .formatted(version, order));
        }
        long tensorCount = count(8 + 1 + 4 + 8 + 4 + 8, "number of tensors");
        long pairCount = count(8 + 1 + 4 + 1, "number of keys");
        Set<String> keys = new HashSet<>();
        for (long i = 0; i < pairCount; i++) {
            String key = text(MAX_KEY_BYTES, "key");
            if (!keys.add(key)) {
                throw file.refusal("has the key '" + SafeText.excerpt(key) + "' twice");
            }
            int type = (int) number(4, "type of a value");
            if (key.equals(ALIGNMENT)) {
                alignment(type);
            } else {
                pass(type, 0);
            }
        }
        for (long i = 0; i < tensorCount; i++) {
            tensor();
        }
    }

    private void alignment(int type) throws IOException {
        long value = type == UINT32 ? number(4, ALIGNMENT) : 0;
        if (value < 8 || value > MAX_ALIGNMENT || Long.bitCount(value) != 1) {
            throw file.refusal(
                    "has %s %s of type %s: expected a power of two, 8 to %s, of type %s"
                            .formatted(ALIGNMENT, value, type, MAX_ALIGNMENT, UINT32));
        }
        alignment = (int) value;
    }

    private void pass(int type, int depth) throws IOException {
        if (type == STRING) {
            skip(count(1, "length of a text"));
            return;
        }
        if (type != ARRAY) {
            skip(valueBytes(type));
            return;
        }
        int element = (int) number(4, "type of an array");
        boolean varies = element == STRING || element == ARRAY;
        int least = varies ? 8 : valueBytes(element);
        long count = count(least, "length of an array");
        if (!varies) {
            skip(count * least);
            return;
        }
        if (depth == MAX_NESTED) {
            throw file.refusal("has arrays in arrays, more than " + MAX_NESTED + " deep");
        }
        for (long i = 0; i < count; i++) {
            pass(element, depth + 1);
        }
    }

    private int valueBytes(int type) {
        if (type < 0 || type >= VALUE_BYTES.length) {
            throw file.refusal(
                    "has a value of type %s: expected 0 to %s"
                            .formatted(Integer.toUnsignedString(type), VALUE_BYTES.length - 1));
        }
        return VALUE_BYTES[type];
    }

    private void tensor() throws IOException {
        String name = text(MAX_NAME_BYTES, "name of a tensor");
        String what = "describes tensor '" + SafeText.excerpt(name) + "' ";
        long dimensions = number(4, "dimensions of a tensor");
        if (dimensions > MAX_DIMENSIONS) {
            throw file.refusal(
                    "%swith %s dimensions: expected at most %s"
                            .formatted(what, dimensions, MAX_DIMENSIONS));
        }
        long[] shape = new long[(int) dimensions];
        for (int i = 0; i < shape.length; i++) {
            shape[i] = number(8, "shape of a tensor");
            if (shape[i] < 1) {
                throw file.refusal(
                        "%swith a dimension of %s: expected 1 or more"
                                .formatted(what, Long.toUnsignedString(shape[i])));
            }
        }
        int type = (int) number(4, "type of a tensor");
        long offset = number(8, "offset of a tensor");
        if (offset < 0 || offset % alignment != 0) {
            throw file.refusal(
                    "%sat byte %s: expected a multiple of %s"
                            .formatted(what, Long.toUnsignedString(offset), alignment));
        }
        if (tensors.put(name, new Entry(shape, type, offset)) != null) {
            throw file.refusal(what + "twice");
        }
    }

    private long position() {
        return chunkEnd - chunk.remaining();
    }

    private long left() {
        return file.sizeBytes() - position();
    }

    /** A number of things of at least {@code leastBytes} each, which the rest can hold. */
    private long count(int leastBytes, String what) throws IOException {
        long count = number(8, what);
        if (count < 0 || count > left() / leastBytes) {
            throw file.refusal(
                    "has %s as %s: expected at most %s, for the %s bytes that follow"
                            .formatted(
                                    Long.toUnsignedString(count),
                                    what,
                                    left() / leastBytes,
                                    left()));
        }
        return count;
    }

    private String text(int mostBytes, String what) throws IOException {
        long length = count(1, "length of a " + what);
        if (length < 1 || length > mostBytes) {
            throw file.refusal(
                    "has a %s of %s bytes: expected 1 to %s".formatted(what, length, mostBytes));
        }
        byte[] bytes = new byte[(int) length];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) number(1, what);
        }
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** An unsigned number of 1, 4 or 8 bytes. */
    private long number(int bytes, String what) throws IOException {
        if (chunk.remaining() < bytes) {
            long from = position();
            int size = (int) Math.max(bytes, Math.min(CHUNK_BYTES, file.sizeBytes() - from));
            chunk =
                    ByteBuffer.wrap(file.bytes(from, size, "header (" + what + ")"))
                            .order(ByteOrder.LITTLE_ENDIAN);
            chunkEnd = from + size;
        }
        return switch (bytes) {
            case 1 -> chunk.get() & 0xFF;
            case 4 -> Integer.toUnsignedLong(chunk.getInt());
            default -> chunk.getLong();
        };
    }

    private void skip(long bytes) {
        if (bytes > left()) {
            throw file.refusal(
                    "is cut short: a value of %s bytes, %s follow".formatted(bytes, left()));
        }
        if (bytes <= chunk.remaining()) {
            chunk.position(chunk.position() + (int) bytes);
        } else {
            chunkEnd = position() + bytes;
            chunk.position(chunk.limit());
        }
    }
}
