package dev.weft.cuda.exec;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

/** The texts of the kernels, which come along with these classes. Any thread may call it. */
public final class KernelSources {

    private KernelSources() {}

    /** The text of every file in {@link KernelVariants#FILES}, by name. */
    public static Map<String, String> read() throws IOException {
        Map<String, String> texts = new TreeMap<>();
        for (String name : KernelVariants.FILES) {
            texts.put(name, text(name));
        }
        return Collections.unmodifiableMap(texts);
    }

    private static String text(String name) throws IOException {
        try (InputStream source =
                KernelSources.class.getResourceAsStream("/dev/weft/cuda/kernels/" + name)) {
            if (source == null) {
                throw new FileNotFoundException(name + " is not among Weft's classes");
            }
            return new String(source.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
