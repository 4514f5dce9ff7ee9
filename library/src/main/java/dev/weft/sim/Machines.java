package dev.weft.sim;

import static java.util.regex.Pattern.CASE_INSENSITIVE;

import dev.weft.process.SafeText;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The available models: those that come with Weft, and the user's. Thread-safe. */
public final class Machines {

    /** The name of the model that was measured on this machine. */
    public static final String HERE = "here";

    private static final List<String> NAMES =
            List.of(
                    "Ascend910B1",
                    "Ascend910B2",
                    "Ascend910B3",
                    "Ascend910C",
                    "cpu-1gbe",
                    "cpu-100gbe",
                    "h100-nvlink8",
                    "h200-nvlink8",
                    "h200-pcie",
                    "torus-16x16",
                    "trn2",
                    "trn2-lnc1");

    private Machines() {}

    /** The models that come with Weft. */
    public static List<String> names() {
        return NAMES;
    }

    /**
     * The names that Ascend's tools have for the chips of an A2 (910B) and an A3 (910C, 910_93).
     */
    private static final Pattern ASCEND =
            Pattern.compile("(?:ascend)?910(b[0-9a-z_-]*|c|_93[0-9a-z_-]*)", CASE_INSENSITIVE);

    /**
     * A model that comes with Weft; upper and lower case do not matter. A chip of an Ascend A2 or
     * A3 without a model of its own has that of the {@linkplain #ascendModel nearest} one.
     */
    public static Machine named(String name) {
        for (String known : NAMES) {
            if (known.equalsIgnoreCase(name)) {
                return shipped(known);
            }
        }
        Optional<String> ascend = ascendModel(name);
        if (ascend.isPresent()) {
            return shipped(ascend.get());
        }
        throw new IllegalArgumentException(
                "unknown machine '%s': expected one of %s, %s or a path that ends in .json"
                        .formatted(SafeText.excerpt(name), String.join(", ", NAMES), HERE));
    }

    /**
     * The model for a chip by its name in Ascend's tools, such as {@code Ascend910B4}, {@code 910B}
     * or {@code Ascend910_9391}; empty if it is none of an A2 or A3.
     */
    public static Optional<String> ascendModel(String name) {
        Matcher chip = ASCEND.matcher(name);
        if (!chip.matches()) {
            return Optional.empty();
        }
        String kind = chip.group(1).toUpperCase(Locale.ROOT);
        if (!kind.startsWith("B")) {
            return Optional.of("Ascend910C");
        }
        // The first digit orders them by rate: 4 and more are nearest to 3.
        int digit = kind.length() > 1 ? Character.digit(kind.charAt(1), 10) : 1;
        return Optional.of("Ascend910B" + Math.clamp(digit, 1, 3));
    }

    /** The chip's name in the spelling of Ascend's tools; other names as they are. */
    public static String ascendName(String name) {
        Matcher chip = ASCEND.matcher(name);
        return chip.matches() ? "Ascend910" + chip.group(1).toUpperCase(Locale.ROOT) : name;
    }

    private static Machine shipped(String name) {
        String file = name + ".json";
        try (InputStream model = Machines.class.getResourceAsStream("machines/" + file)) {
            if (model == null) {
                throw new IllegalStateException(file + " is not among Weft's classes");
            }
            return MachineFile.parse(file, model.readAllBytes());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** A model by its name, {@value #HERE} or the path of its file, which ends in .json. */
    public static Machine of(String nameOrPath) {
        if (nameOrPath.equalsIgnoreCase(HERE)) {
            return MachineFile.readCached(herePath());
        }
        if (!nameOrPath.toLowerCase(Locale.ROOT).endsWith(".json")) {
            return named(nameOrPath);
        }
        try {
            return MachineFile.read(Path.of(nameOrPath));
        } catch (InvalidPathException e) {
            throw new IllegalArgumentException(
                    SafeText.excerpt(nameOrPath) + ": not a path: " + e.getReason(), e);
        }
    }

    /** Like {@link #of(String)}; for trn2, {@code lnc} says whether a rank is one core or two. */
    public static Machine of(String nameOrPath, int lnc) {
        return of(lnc == 1 && nameOrPath.equalsIgnoreCase("trn2") ? "trn2-lnc1" : nameOrPath);
    }

    /**
     * The newest model of this machine that has as many cores as this process may use: each engine
     * has its own.
     */
    public static Path herePath() {
        return newest(hereFolder(), Runtime.getRuntime().availableProcessors());
    }

    static Path newest(Path folder, int cores) {
        String names = "machine-" + cores + "-cores-*.json";
        try (DirectoryStream<Path> models = Files.newDirectoryStream(folder, names)) {
            Path newest = null;
            for (Path model : models) {
                if (newest == null || modified(model).compareTo(modified(newest)) > 0) {
                    newest = model;
                }
            }
            if (newest != null) {
                return newest;
            }
        } catch (NoSuchFileException | NotDirectoryException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no models yet", e);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        throw new IllegalArgumentException(
                "%s: no model of this machine: run ./weft calibrate to measure it"
                        .formatted(folder.resolve(names)));
    }

    private static FileTime modified(Path file) throws IOException {
        return Files.getLastModifiedTime(file, LinkOption.NOFOLLOW_LINKS);
    }

    /** The path of the model of this machine with that description. */
    public static Path herePath(String description) {
        String key = description.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]+", "-");
        return hereFolder().resolve("machine-" + key + ".json");
    }

    /** The folder in the user's caches where Weft keeps what it has measured. */
    public static Path hereFolder() {
        return hereFolder(System.getenv("XDG_CACHE_HOME"), System.getProperty("user.home"));
    }

    static Path hereFolder(String caches, String home) {
        Path base = caches != null && !caches.isBlank() ? Path.of(caches) : Path.of(home, ".cache");
        return base.resolve("weft");
    }
}
