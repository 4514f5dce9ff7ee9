package dev.weft.sim;

import dev.weft.files.AtomicFile;
import dev.weft.files.PrivateFiles;
import dev.weft.json.JsonObject;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/**
 * Machines as JSON files. A missing or invalid file is an {@link IllegalArgumentException} with a
 * one-line message that begins with its name and says which field has which value and what is
 * expected; nothing in a file is ignored. What is written can be read back, and gives the same
 * machine. Thread-safe.
 */
public final class MachineFile {

    /** The schema that every file names. */
    public static final String SCHEMA = "weft.machine/1";

    private static final int MAX_BYTES = 1 << 20;

    private MachineFile() {}

    public static Machine read(Path path) {
        // Checked before opening: opening a pipe would block.
        if (!Files.exists(path)) {
            throw new IllegalArgumentException(path + ": no such file");
        }
        if (!Files.isRegularFile(path)) {
            throw new IllegalArgumentException(path + ": not a regular file");
        }
        try (InputStream file = Files.newInputStream(path)) {
            return parse(path.toString(), file.readNBytes(MAX_BYTES + 1));
        } catch (AccessDeniedException e) {
            throw new IllegalArgumentException(path + ": no permission to read it", e);
        } catch (IOException e) {
            throw new IllegalArgumentException(path + ": cannot be read: " + e.getMessage(), e);
        }
    }

    /** A machine from the user's caches: a file that nobody else can write, and not a link. */
    public static Machine readCached(Path path) {
        try {
            Path folder = PrivateFiles.guarded(path.toAbsolutePath().getParent());
            return parse(
                    path.toString(),
                    PrivateFiles.read(folder.resolve(path.getFileName()), MAX_BYTES + 1));
        } catch (NoSuchFileException e) {
            throw new IllegalArgumentException(path + ": no such file", e);
        } catch (IOException e) {
            throw new IllegalArgumentException(path + ": not used: " + e.getMessage(), e);
        }
    }

    /** The machine that {@code json} describes; messages call it {@code origin}. */
    public static Machine parse(String origin, byte[] json) {
        if (json.length > MAX_BYTES) {
            throw new IllegalArgumentException(
                    origin + ": has more than " + MAX_BYTES + " bytes: expected a machine model");
        }
        return MachineReader.machine(JsonObject.parse(origin, json));
    }

    /** The text of a machine's file. */
    public static String toJson(Machine machine) {
        String json;
        try {
            json = MachineWriter.text(machine);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        // A model can hold what no file may: NaN, or implausibly large counts.
        Machine again = parse(machine.name(), json.getBytes(StandardCharsets.UTF_8));
        if (!again.equals(machine)) {
            throw new IllegalArgumentException(machine + ": would be read as " + again);
        }
        return json;
    }

    /** Writes a machine's file into an existing folder, completely or not at all. */
    public static void write(Machine machine, Path path) {
        byte[] json = toJson(machine).getBytes(StandardCharsets.UTF_8);
        try {
            AtomicFile.write(path, json);
        } catch (IOException e) {
            throw new UncheckedIOException(path + ": cannot be written: " + e.getMessage(), e);
        }
    }

    /** Writes a file into the user's caches, a folder that others cannot write; replaces a link. */
    public static void writeCached(Machine machine, Path path) {
        byte[] json = toJson(machine).getBytes(StandardCharsets.UTF_8);
        try {
            Path folder = PrivateFiles.cache(path.toAbsolutePath().getParent());
            PrivateFiles.write(folder.resolve(path.getFileName()), json);
        } catch (IOException e) {
            throw new UncheckedIOException(path + ": not written: " + e.getMessage(), e);
        }
    }
}
