package dev.weft.cli.message;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.files.PrivateFiles;
import dev.weft.json.RecordShape;
import dev.weft.json.RecordShape.Component;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Records as bytes, between two processes of the same program, so they carry no version. Components
 * are texts, numbers, flags, enums, arrays of longs, records, optional ones, or lists of these;
 * flags in boxes and records may be null. For one thread each.
 */
public final class RecordBytes {

    private final DataInputStream in;

    private RecordBytes(byte[] bytes) {
        this.in = new DataInputStream(new ByteArrayInputStream(bytes));
    }

    /** The bytes of a record, for {@link #read}. */
    public static byte[] of(Record record) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            write(out, record);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot write to memory", e);
        }
        return bytes.toByteArray();
    }

    public static void write(Record record, Path file) throws IOException {
        PrivateFiles.write(file, of(record));
    }

    private static void write(DataOutputStream out, Object value) throws IOException {
        switch (value) {
            case Enum<?> constant -> out.writeByte(constant.ordinal());
            case Boolean flag -> out.writeBoolean(flag);
            case Integer number -> out.writeInt(number);
            case Long number -> out.writeLong(number);
            case Double number -> out.writeDouble(number);
            case String text -> {
                byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
                out.writeInt(bytes.length);
                out.write(bytes);
            }
            case long[] numbers -> {
                out.writeInt(numbers.length);
                for (long number : numbers) {
                    out.writeLong(number);
                }
            }
            case List<?> elements -> {
                out.writeInt(elements.size());
                for (Object element : elements) {
                    write(out, element);
                }
            }
            case Optional<?> optional -> {
                out.writeBoolean(optional.isPresent());
                if (optional.isPresent()) {
                    write(out, optional.get());
                }
            }
            case Record record -> {
                for (Component component : RecordShape.of(record.getClass()).components()) {
                    Object part = component.in(record);
                    boolean nullable = isNullable(component.type());
                    if (nullable) {
                        out.writeBoolean(part != null);
                    }
                    if (!nullable || part != null) {
                        write(out, part);
                    }
                }
            }
            default -> throw new IllegalArgumentException("no bytes for a " + value.getClass());
        }
    }

    private static boolean isNullable(Class<?> type) {
        return type == Boolean.class || type.isRecord();
    }

    private static Type element(Type type) {
        return ((ParameterizedType) type).getActualTypeArguments()[0];
    }

    /**
     * Reads the bytes of {@link #of}. No count in them makes it allocate more than the bytes that
     * follow.
     *
     * @throws IOException with one line, if these are not the bytes of such a record
     */
    public static <R extends Record> R read(Class<R> type, byte[] bytes) throws IOException {
        RecordBytes reader = new RecordBytes(bytes);
        try {
            R record = type.cast(reader.record(type));
            if (reader.in.available() > 0) {
                throw new IOException(reader.in.available() + " bytes follow its end");
            }
            return record;
        } catch (IOException | IllegalArgumentException e) {
            int at = bytes.length - reader.in.available();
            String why =
                    e.getMessage() == null ? "is cut short" : ErrorMessage.oneLine(e.getMessage());
            throw new IOException(
                    "no %s: at byte %s: %s".formatted(type.getSimpleName(), at, why), e);
        }
    }

    public static <R extends Record> R read(Class<R> type, Path file, int mostBytes)
            throws IOException {
        return read(type, PrivateFiles.read(file, mostBytes));
    }

    private Object record(Class<?> type) throws IOException {
        RecordShape shape = RecordShape.of(type);
        List<Object> values = new ArrayList<>();
        for (Component component : shape.components()) {
            boolean isThere = !isNullable(component.type()) || in.readBoolean();
            values.add(isThere ? value(component.generic()) : null);
        }
        return shape.create(values);
    }

    private Object value(Type type) throws IOException {
        Class<?> raw = (Class<?>) (type instanceof ParameterizedType t ? t.getRawType() : type);
        if (raw == boolean.class || raw == Boolean.class) {
            return in.readBoolean();
        } else if (raw == int.class) {
            return in.readInt();
        } else if (raw == long.class) {
            return in.readLong();
        } else if (raw == double.class) {
            return in.readDouble();
        } else if (raw == String.class) {
            return new String(in.readNBytes(count(1)), StandardCharsets.UTF_8);
        } else if (raw.isEnum()) {
            return constant(raw.getEnumConstants());
        } else if (raw == Optional.class) {
            return in.readBoolean() ? Optional.of(value(element(type))) : Optional.empty();
        } else if (raw.isRecord()) {
            return record(raw);
        }
        return raw == List.class ? list(element(type)) : longs();
    }

    /** How many things of at least {@code bytesEach} bytes come next. */
    private int count(int bytesEach) throws IOException {
        int count = in.readInt();
        if (count < 0 || count > in.available() / bytesEach) {
            throw new IOException(
                    "a count of " + count + " where " + in.available() + " bytes are left");
        }
        return count;
    }

    private long[] longs() throws IOException {
        long[] values = new long[count(Long.BYTES)];
        for (int i = 0; i < values.length; i++) {
            values[i] = in.readLong();
        }
        return values;
    }

    private List<Object> list(Type element) throws IOException {
        List<Object> values = new ArrayList<>();
        for (int left = count(1); left > 0; left--) {
            values.add(value(element));
        }
        return values;
    }

    private Object constant(Object[] constants) throws IOException {
        int ordinal = in.readUnsignedByte();
        if (ordinal >= constants.length) {
            throw new IOException(ordinal + ": expected 0 to " + (constants.length - 1));
        }
        return constants[ordinal];
    }
}
