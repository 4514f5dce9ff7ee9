package dev.weft.cuda.kernel;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * What one compiled kernel is made from. Ready kernels are packed and found by the digest of it, so
 * one made from another source, other options or for another architecture is never taken.
 * Immutable; any thread may call it.
 *
 * @param source name of the source, for example {@code mma_gemm.cu}
 * @param options the source's switches in order, for example {@code -DIN_BF16=1}; what all kernels
 *     are compiled with, as C++17, is not among them
 * @param architecture for example {@code sm_90a}
 */
public record KernelKey(String source, List<String> options, String architecture) {

    private static final String SOURCE_SUFFIX = ".cu";
    private static final String HEADER_SUFFIX = ".cuh";
    private static final Pattern ARCHITECTURE = Pattern.compile("sm_[0-9]{2,3}[af]?");

    public KernelKey {
        options = List.copyOf(options);
        if (!source.endsWith(SOURCE_SUFFIX)) {
            throw new IllegalArgumentException(
                    "source '" + source + "': expected a name that ends with " + SOURCE_SUFFIX);
        }
        if (!ARCHITECTURE.matcher(architecture).matches()) {
            throw new IllegalArgumentException(
                    "architecture '" + architecture + "': expected one such as sm_80 or sm_90a");
        }
    }

    /** The same with another switch behind the others. */
    KernelKey with(String option) {
        List<String> more = new ArrayList<>(options);
        more.add(option);
        return new KernelKey(source, more, architecture);
    }

    /** The name under which the ready kernel is packed. */
    public String fileName(Map<String, String> sources) {
        return digest(sources) + ".cubin";
    }

    /**
     * SHA-256, in hexadecimal, of the source's text, the texts of all headers in the order of their
     * names, the options and the architecture. Other sources do not count.
     *
     * @param sources all texts by name; names that end with {@code .cuh} are headers
     */
    public String digest(Map<String, String> sources) {
        String text = sources.get(source);
        if (text == null) {
            throw new IllegalArgumentException(
                    "no source " + source + " among " + new TreeMap<>(sources).keySet());
        }
        List<String> headers =
                new TreeMap<>(sources)
                        .entrySet().stream()
                                .filter(entry -> entry.getKey().endsWith(HEADER_SUFFIX))
                                .map(Map.Entry::getValue)
                                .toList();
        MessageDigest digest = sha256();
        add(digest, List.of(text));
        add(digest, headers);
        add(digest, options);
        add(digest, List.of(architecture));
        return HexFormat.of().formatHex(digest.digest());
    }

    /** Counts and lengths go in as well: no text can pass for the end of the one before it. */
    private static void add(MessageDigest digest, List<String> texts) {
        digest.update(number(texts.size()));
        for (String text : texts) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            digest.update(number(bytes.length));
            digest.update(bytes);
        }
    }

    private static byte[] number(int value) {
        return ByteBuffer.allocate(Integer.BYTES).putInt(value).array();
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every Java has SHA-256", e);
        }
    }
}
