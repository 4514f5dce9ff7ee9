package dev.weft.examples.llm;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The pairs of keys and values at the start of a GGUF file: texts, numbers, truth values, and lists
 * of them. Weft itself reads the tensors.
 */
final class GgufValues {

    private static final int VERSION = 3;
    private static final int OLDEST = 2;
    private static final long MOST_BYTES = 1 << 28;

    private static final int FLOAT32 = 6;
    private static final int BOOL = 7;
    private static final int STRING = 8;
    private static final int ARRAY = 9;
    private static final int FLOAT64 = 12;

    private final ByteBuffer bytes;

    private GgufValues(ByteBuffer bytes) {
        this.bytes = bytes;
    }

    static Map<String, Object> read(Path path) throws IOException {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            long size = Math.min(channel.size(), MOST_BYTES);
            ByteBuffer bytes = channel.map(FileChannel.MapMode.READ_ONLY, 0, size);
            return new GgufValues(bytes.order(ByteOrder.LITTLE_ENDIAN)).all();
        } catch (RuntimeException e) {
            throw new IOException(path + ": cannot read its values: " + e.getMessage(), e);
        }
    }

    private Map<String, Object> all() throws IOException {
        bytes.getInt(); // the magic number
        int version = bytes.getInt();
        if (version < OLDEST || version > VERSION) {
            throw new IOException(
                    "GGUF version %d: expected %d or %d".formatted(version, OLDEST, VERSION));
        }
        bytes.getLong(); // how many tensors there are
        long count = bytes.getLong();
        Map<String, Object> values = new LinkedHashMap<>();
        for (long i = 0; i < count; i++) {
            String key = text();
            values.put(key, value(bytes.getInt()));
        }
        return values;
    }

    private Object value(int type) throws IOException {
        return switch (type) {
            case 0, 1 -> bytes.get();
            case 2, 3 -> bytes.getShort();
            case 4, 5 -> bytes.getInt();
            case FLOAT32 -> bytes.getFloat();
            case BOOL -> bytes.get() != 0;
            case STRING -> text();
            case ARRAY -> list();
            case 10, 11 -> bytes.getLong();
            case FLOAT64 -> bytes.getDouble();
            default -> throw new IOException("a value of type " + type);
        };
    }

    private List<Object> list() throws IOException {
        int type = bytes.getInt();
        if (type == ARRAY) {
            throw new IOException("a list of lists");
        }
        long count = bytes.getLong();
        List<Object> list = new ArrayList<>();
        for (long i = 0; i < count; i++) {
            list.add(value(type));
        }
        return list;
    }

    private String text() throws EOFException {
        long length = bytes.getLong();
        if (length < 0 || length > bytes.remaining()) {
            throw new EOFException("a text of %d bytes".formatted(length));
        }
        byte[] text = new byte[(int) length];
        bytes.get(text);
        return new String(text, StandardCharsets.UTF_8);
    }
}
