package dev.weft.tensor;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Writes GGUF files, right ones and, on request, wrong ones. */
final class GgufWriter {

    int version = 3;
    int alignment = 32;
    private long pairs;
    private final ByteArrayOutputStream keys = new ByteArrayOutputStream();
    private final List<Tensor> tensors = new ArrayList<>();

    /**
     * @param offset -1 to place it behind the one before
     */
    record Tensor(String name, long[] shape, int type, long offset, byte[] data) {}

    GgufWriter text(String key, String value) {
        return key(key, 8).value(text(value));
    }

    GgufWriter number(String key, int value) {
        return key(key, 4).value(word(value));
    }

    /** Texts in arrays in an array. */
    GgufWriter texts(String key, String... values) {
        key(key, 9).value(word(9)).value(twoWords(1));
        value(word(8)).value(twoWords(values.length));
        for (String value : values) {
            value(text(value));
        }
        return this;
    }

    GgufWriter key(String key, int type) {
        pairs++;
        return value(text(key)).value(word(type));
    }

    GgufWriter value(byte[] bytes) {
        keys.writeBytes(bytes);
        return this;
    }

    GgufWriter tensor(String name, QuantizedMatrix matrix) {
        byte[] data = matrix.data().toArray(java.lang.foreign.ValueLayout.JAVA_BYTE);
        return tensor(
                new Tensor(
                        name,
                        new long[] {matrix.cols(), matrix.rows()},
                        matrix.type().number(),
                        -1,
                        data));
    }

    GgufWriter tensor(String name, Matrix matrix) {
        int type =
                switch (matrix.dtype()) {
                    case FP32 -> 0;
                    case FP16 -> 1;
                    default -> 30;
                };
        byte[] data = matrix.data().toArray(java.lang.foreign.ValueLayout.JAVA_BYTE);
        return tensor(new Tensor(name, new long[] {matrix.cols(), matrix.rows()}, type, -1, data));
    }

    GgufWriter tensor(Tensor tensor) {
        tensors.add(tensor);
        return this;
    }

    byte[] bytes() {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.writeBytes("GGUF".getBytes(StandardCharsets.US_ASCII));
        all.writeBytes(word(version));
        all.writeBytes(twoWords(tensors.size()));
        all.writeBytes(twoWords(pairs));
        all.writeBytes(keys.toByteArray());
        long next = 0;
        ByteArrayOutputStream data = new ByteArrayOutputStream();
        for (Tensor tensor : tensors) {
            all.writeBytes(text(tensor.name));
            all.writeBytes(word(tensor.shape.length));
            for (long size : tensor.shape) {
                all.writeBytes(twoWords(size));
            }
            all.writeBytes(word(tensor.type));
            all.writeBytes(twoWords(tensor.offset < 0 ? next : tensor.offset));
            data.writeBytes(tensor.data);
            pad(data);
            next = data.size();
        }
        pad(all);
        all.writeBytes(data.toByteArray());
        return all.toByteArray();
    }

    void write(Path path) throws IOException {
        Files.write(path, bytes());
    }

    private void pad(ByteArrayOutputStream bytes) {
        while (bytes.size() % alignment != 0) {
            bytes.write(0);
        }
    }

    static byte[] text(String value) {
        byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.writeBytes(twoWords(bytes.length));
        all.writeBytes(bytes);
        return all.toByteArray();
    }

    static byte[] word(int value) {
        return ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(value).array();
    }

    static byte[] twoWords(long value) {
        return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(value).array();
    }
}
