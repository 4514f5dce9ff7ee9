package dev.weft.cli.data;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.ReportOptions;
import dev.weft.files.TemporaryFiles;
import dev.weft.sim.Machines;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;

/**
 * The files that a command reads and those that it writes. A file that would be both, or be written
 * twice, is refused in one line before anything is touched, whatever names and links the user has
 * given it.
 */
public final class CommandFiles {

    /** The most links that the system follows. */
    private static final int MOST_LINKS = 40;

    private final List<Named> inputs = new ArrayList<>();
    private final List<Named> outputs = new ArrayList<>();

    /**
     * @param resolved without links, even if it does not exist yet
     */
    private record Named(String option, String value, Path resolved) {

        boolean isSameAs(Path other) {
            if (resolved.equals(other)) {
                return true;
            }
            try {
                // Two names of one file need not be links to each other.
                return Files.exists(resolved)
                        && Files.exists(other)
                        && Files.isSameFile(resolved, other);
            } catch (IOException e) {
                throw new UncheckedIOException("cannot compare " + resolved + ", " + other, e);
            }
        }

        UsageException refusal(String reason) {
            return new UsageException(option + " " + value + ": " + reason);
        }
    }

    /**
     * @param fileOrNull an option's value
     */
    public CommandFiles reads(String option, String fileOrNull) {
        if (fileOrNull != null) {
            inputs.add(new Named(option, fileOrNull, resolved(UserFiles.path(fileOrNull))));
        }
        return this;
    }

    /** Reads a machine's model, if {@code -v} names a file. */
    public CommandFiles readsMachine(String nameOrPath) {
        if (nameOrPath != null && nameOrPath.equalsIgnoreCase(Machines.HERE)) {
            inputs.add(new Named("-v", nameOrPath, resolved(Machines.herePath())));
        } else if (nameOrPath != null && nameOrPath.toLowerCase(Locale.ROOT).endsWith(".json")) {
            inputs.add(new Named("-v", nameOrPath, resolved(Path.of(nameOrPath))));
        }
        return this;
    }

    /**
     * @param fileOrNull an option's value; - is standard output, not a file
     */
    public CommandFiles writes(String option, String fileOrNull) {
        if (fileOrNull != null && !fileOrNull.equals("-")) {
            Named output = new Named(option, fileOrNull, resolved(Path.of(fileOrNull)));
            for (Named other : outputs) {
                if (output.isSameAs(other.resolved)) {
                    throw output.refusal("is that of " + other.option + ", expected another file");
                }
            }
            outputs.add(output);
        }
        return this;
    }

    public CommandFiles writes(ReportOptions options) {
        return writes("--report", options.report).writes("--trace", options.trace);
    }

    /** Refuses an output that is an input, and has what killed ranks leave beside it removed. */
    public CommandFiles check() {
        for (Named output : outputs) {
            if (output.resolved.getParent() != null) {
                TemporaryFiles.watch(output.resolved.getParent());
            }
            for (Named input : inputs) {
                if (output.isSameAs(input.resolved)) {
                    throw output.refusal(
                            "is that of %s, which is read, expected another file"
                                    .formatted(input.option));
                }
            }
        }
        return this;
    }

    /** Refuses an output that has the name of one of a data folder's own files. */
    public void checkOutputs(Path dataFolder) {
        Path folder = resolved(dataFolder);
        for (Named output : outputs) {
            if (folder.equals(output.resolved.getParent())
                    && OwnFiles.isReserved(output.resolved.getFileName().toString())) {
                throw output.refusal(
                        "is a file of --data-dir " + dataFolder + ", expected another file");
            }
        }
    }

    /** Refuses an input that is one of the files there that will be written or deleted. */
    public void checkInputs(Path dataFolder, Collection<String> names) {
        for (String name : names) {
            Path file = resolved(dataFolder.resolve(name));
            for (Named input : inputs) {
                if (input.isSameAs(file)) {
                    throw input.refusal(
                            ("would be replaced, as %s of --data-dir %s: move it away, or name another"
                                            + " folder")
                                    .formatted(name, dataFolder));
                }
            }
        }
    }

    private static Path resolved(Path file) {
        Path at = file.toAbsolutePath();
        for (int links = 0; links < MOST_LINKS; links++) {
            try {
                return at.toRealPath();
            } catch (IOException e) {
                // It does not exist yet, or cannot be read: use its folder.
                System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no real path", e);
            }
            Path parent = at.getParent();
            if (parent == null) {
                return at;
            }
            Path here = resolved(parent).resolve(at.getFileName());
            try {
                if (!Files.isSymbolicLink(here)) {
                    return here;
                }
                at = here.resolveSibling(Files.readSymbolicLink(here));
            } catch (IOException e) {
                throw new UncheckedIOException("cannot follow the link " + here, e);
            }
        }
        return at;
    }
}
