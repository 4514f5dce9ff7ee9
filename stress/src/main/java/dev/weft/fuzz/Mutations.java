package dev.weft.fuzz;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.random.RandomGenerator;

/**
 * Damages inputs: as bytes (bits, words, lengths, cuts, repetitions, two inputs joined) and, where
 * they are text, as words ({@link TextMutations}). The same generator state gives the same damage.
 * For one thread.
 */
final class Mutations {

    /** Inputs grow no further: what is wrong with a larger one is wrong with this. */
    static final int MAX_BYTES = 1 << 16;

    private static final long[] WORDS = {
        0,
        1,
        -1,
        2,
        7,
        8,
        127,
        128,
        255,
        256,
        0x7FFF,
        0x8000,
        0xFFFF,
        1 << 20,
        Integer.MAX_VALUE,
        Integer.MIN_VALUE,
        0xFFFFFFFFL,
        1L << 32,
        1L << 40,
        1L << 53,
        1L << 62,
        Long.MAX_VALUE,
        Long.MIN_VALUE,
        Long.MAX_VALUE / 2 + 1,
        Long.MAX_VALUE / 4 + 1
    };

    private final RandomGenerator random;
    private final TextMutations text;

    Mutations(RandomGenerator random) {
        this.random = random;
        this.text = new TextMutations(random);
    }

    /** One of {@code corpus} with some damage, mostly little. */
    byte[] next(List<byte[]> corpus) {
        byte[] bytes = pick(corpus);
        do {
            bytes = damaged(bytes, corpus);
        } while (random.nextInt(5) < 2);
        return bytes.length <= MAX_BYTES ? bytes : Arrays.copyOf(bytes, MAX_BYTES);
    }

    private byte[] pick(List<byte[]> corpus) {
        return corpus.get(random.nextInt(corpus.size()));
    }

    private byte[] damaged(byte[] bytes, List<byte[]> corpus) {
        if (bytes.length == 0) {
            return noise(1 + random.nextInt(20));
        }
        if (TextMutations.isText(bytes) && random.nextInt(4) > 0) {
            return text.damaged(bytes);
        }
        int at = random.nextInt(bytes.length);
        return switch (random.nextInt(10)) {
            case 0 -> with(bytes, at, bytes[at] ^ 1 << random.nextInt(8));
            case 1 -> with(bytes, at, random.nextInt());
            case 2 -> Arrays.copyOf(bytes, at);
            case 3 -> joined(bytes, noise(1 + random.nextInt(40)));
            case 4, 5 -> word(bytes, at);
            case 6 -> word(bytes, random.nextInt(Math.min(16, bytes.length)));
            case 7 -> without(bytes, at, 1 + random.nextInt(16));
            case 8 -> repeated(bytes, at);
            default -> {
                byte[] other = pick(corpus);
                int from = other.length == 0 ? 0 : random.nextInt(other.length);
                yield joined(
                        Arrays.copyOf(bytes, at), Arrays.copyOfRange(other, from, other.length));
            }
        };
    }

    private byte[] noise(int length) {
        byte[] noise = new byte[length];
        random.nextBytes(noise);
        return noise;
    }

    private static byte[] with(byte[] bytes, int at, int value) {
        byte[] result = bytes.clone();
        result[at] = (byte) value;
        return result;
    }

    /** A number of 1 to 8 bytes in either order: an extreme one, or the old one and a little. */
    private byte[] word(byte[] bytes, int at) {
        int width = 1 << random.nextInt(4);
        byte[] result = bytes.clone();
        ByteBuffer whole = ByteBuffer.allocate(Long.BYTES);
        whole.order(random.nextBoolean() ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN);
        int from = whole.order() == ByteOrder.LITTLE_ENDIAN ? 0 : Long.BYTES - width;
        int count = Math.min(width, bytes.length - at);
        System.arraycopy(bytes, at, whole.array(), from, count);
        long old = whole.getLong(0);
        long value =
                switch (random.nextInt(4)) {
                    case 0 -> old + random.nextInt(-4, 5);
                    case 1 -> bytes.length + random.nextInt(-9, 10);
                    default -> WORDS[random.nextInt(WORDS.length)];
                };
        whole.putLong(0, value);
        System.arraycopy(whole.array(), from, result, at, count);
        return result;
    }

    static byte[] without(byte[] bytes, int at, int count) {
        int end = Math.min(bytes.length, at + count);
        return joined(Arrays.copyOf(bytes, at), Arrays.copyOfRange(bytes, end, bytes.length));
    }

    private byte[] repeated(byte[] bytes, int at) {
        int count = Math.min(bytes.length - at, 1 + random.nextInt(32));
        int times = 1 + random.nextInt(random.nextInt(10) == 0 ? 2000 : 4);
        ByteArrayOutputStream result = new ByteArrayOutputStream();
        result.write(bytes, 0, at);
        for (int i = 0; i < times && result.size() < MAX_BYTES; i++) {
            result.write(bytes, at, count);
        }
        result.write(bytes, at, bytes.length - at);
        return result.toByteArray();
    }

    static byte[] joined(byte[] head, byte[] tail) {
        byte[] both = Arrays.copyOf(head, head.length + tail.length);
        System.arraycopy(tail, 0, both, head.length, tail.length);
        return both;
    }
}
