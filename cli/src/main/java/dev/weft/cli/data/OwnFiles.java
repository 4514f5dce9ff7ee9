package dev.weft.cli.data;

import dev.weft.cli.console.UsageException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/**
 * Which files in a data folder are Weft's, according to its two stamps: {@code data.txt} for the
 * inputs, {@code outputs.txt} for the outputs. No other file there is replaced or deleted.
 */
public record OwnFiles(Path folder) {

    static final String STAMP = "data.txt";
    static final String OUTPUT_STAMP = "outputs.txt";
    static final String GOLDEN = "golden.bin";

    /** The first word of the output stamp while its run lasts, or after it was killed. */
    static final String UNFINISHED = "unfinished";

    /** Far more than the names of the outputs of all ranks have. */
    private static final int MOST_STAMP_BYTES = 1 << 20;

    private static final Pattern INPUT = Pattern.compile("pe_[0-9]{1,4}_[ab]\\.bin");
    private static final Pattern OUTPUT =
            Pattern.compile("(output|gathered)_rank[0-9]{1,4}\\.(bin|npy)");
    private static final Pattern OUTPUT_STAMP_LINE =
            Pattern.compile("(" + UNFINISHED + " )?(fp32|fp16|bf16) ([0-9]{1,4}) [a-z0-9-]{1,40}");

    /** Whether a file in a data folder may have this name only if Weft wrote it. */
    static boolean isReserved(String name) {
        return Set.of(STAMP, OUTPUT_STAMP, GOLDEN, FolderLock.NAME).contains(name)
                || INPUT.matcher(name).matches()
                || OUTPUT.matcher(name).matches();
    }

    static String shardName(int rank) {
        return "pe_" + rank + "_a.bin";
    }

    static String bName(int rank) {
        return "pe_" + rank + "_b.bin";
    }

    static String outputName(int rank) {
        return "output_rank" + rank + ".bin";
    }

    static String gatheredName(int rank) {
        return "gathered_rank" + rank + ".bin";
    }

    /** The name of the NumPy file for {@code raw}. */
    static String npyName(String raw) {
        return raw.replace(".bin", ".npy");
    }

    static Set<String> inputNames(int ranks, boolean withGolden) {
        Set<String> names = new LinkedHashSet<>();
        for (int rank = 0; rank < ranks; rank++) {
            names.add(shardName(rank));
            names.add(bName(rank));
        }
        if (withGolden) {
            names.add(GOLDEN);
        }
        return names;
    }

    public static Set<String> outputNames(IntStream ranks, boolean gathered, boolean npy) {
        Set<String> names = new LinkedHashSet<>();
        for (int rank : ranks.toArray()) {
            names.add(outputName(rank));
            if (gathered) {
                names.add(gatheredName(rank));
            }
        }
        if (npy) {
            List.copyOf(names).forEach(raw -> names.add(npyName(raw)));
        }
        return names;
    }

    /** Generated inputs and golden, complete or not. */
    Set<String> inputs() throws IOException {
        Path stamp = folder.resolve(STAMP);
        if (!isThere(STAMP)) {
            return Set.of();
        }
        String text = read(stamp);
        DataStamp.Extent extent = text == null ? null : DataStamp.extent(text);
        if (extent == null) {
            throw foreign(STAMP);
        }
        return inputNames(extent.ranks(), extent.golden());
    }

    /** Outputs of the previous run, complete or not. */
    Set<String> outputs() throws IOException {
        if (!isThere(OUTPUT_STAMP)) {
            return Set.of();
        }
        String text = read(folder.resolve(OUTPUT_STAMP));
        List<String> lines = text == null ? List.of("") : text.lines().toList();
        Matcher first = OUTPUT_STAMP_LINE.matcher(lines.isEmpty() ? "" : lines.getFirst());
        if (!first.matches()) {
            throw foreign(OUTPUT_STAMP);
        }
        Set<String> names = new LinkedHashSet<>(lines.subList(1, lines.size()));
        if (!names.stream().allMatch(name -> OUTPUT.matcher(name).matches())) {
            throw foreign(OUTPUT_STAMP);
        }
        return names;
    }

    /** Null if it is too long or not text, and so not Weft's. */
    private static String read(Path stamp) throws IOException {
        try {
            boolean may = Files.isRegularFile(stamp) && Files.size(stamp) <= MOST_STAMP_BYTES;
            return may ? readStamp(stamp) : null;
        } catch (CharacterCodingException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no stamp", e);
            return null;
        }
    }

    /** The text of a stamp; a longer file is none and is not read to its end. */
    static String readStamp(Path stamp) throws IOException {
        byte[] bytes;
        try (InputStream file = Files.newInputStream(stamp)) {
            bytes = file.readNBytes(MOST_STAMP_BYTES + 1);
        }
        if (bytes.length > MOST_STAMP_BYTES) {
            throw new IOException(
                    "%s bytes: expected at most %s".formatted(Files.size(stamp), MOST_STAMP_BYTES));
        }
        return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    }

    /** Refuses to continue if a file that would be written exists and is not Weft's. */
    void refuseOthers(Collection<String> wanted, Set<String> own) {
        for (String name : wanted) {
            if (!own.contains(name) && isThere(name)) {
                throw foreign(name);
            }
        }
    }

    /** What all of them together have. */
    long bytes() throws IOException {
        Set<String> names = new LinkedHashSet<>(inputs());
        names.addAll(outputs());
        long bytes = 0;
        for (String name : names) {
            Path file = folder.resolve(name);
            bytes += Files.isRegularFile(file) ? Files.size(file) : 0;
        }
        return bytes;
    }

    /** Also true for a broken link. */
    private boolean isThere(String name) {
        return Files.exists(folder.resolve(name), LinkOption.NOFOLLOW_LINKS);
    }

    UsageException foreign(String name) {
        return new UsageException(
                "--data-dir %s: holds %s, which Weft did not write and will not replace:"
                        + " move it away, or name another folder",
                folder, name);
    }

    void delete(Collection<String> names) throws IOException {
        for (String name : names) {
            Files.deleteIfExists(folder.resolve(name));
        }
    }
}
