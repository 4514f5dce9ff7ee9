package dev.weft.files;

import java.io.IOException;
import java.io.InputStream;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.Set;

/**
 * Folders and files that only this user can access. They are created this way, whatever the umask,
 * and used only if they are. Links are not followed. Checking a file by its name is safe, because
 * no other user can change what a name in a private folder refers to. Thread-safe.
 */
public final class PrivateFiles {

    private static final Set<PosixFilePermission> FOLDER_MODE =
            PosixFilePermissions.fromString("rwx------");
    private static final Set<PosixFilePermission> FILE_MODE =
            PosixFilePermissions.fromString("rw-------");

    private static final Integer SUPERUSER = 0;

    private static final int STICKY = 01000;
    private static final int WRITABLE_BY_OTHERS = 00022;
    private static final int ALL_BITS = 07777;

    private PrivateFiles() {}

    /**
     * Creates the folder, unless there is one that {@link #existing} accepts.
     *
     * @return its path without links
     */
    public static Path folder(Path folder) throws IOException {
        Path real = inGuarded(folder);
        try {
            Files.createDirectory(real, PosixFilePermissions.asFileAttribute(FOLDER_MODE));
        } catch (FileAlreadyExistsException e) {
            return requirePrivate(real);
        }
        // The umask may have removed permissions that the user needs.
        Files.setPosixFilePermissions(real, FOLDER_MODE);
        return real;
    }

    /**
     * Checks that a folder is this user's, closed to others and in a {@link #guarded} one.
     *
     * @return its path without links
     */
    public static Path existing(Path folder) throws IOException {
        return requirePrivate(inGuarded(folder));
    }

    private static Path inGuarded(Path folder) throws IOException {
        Path absolute = folder.toAbsolutePath();
        Path name = absolute.getFileName();
        return name == null ? absolute : guarded(absolute.getParent()).resolve(name);
    }

    private static Path requirePrivate(Path folder) throws IOException {
        Map<String, Object> found = attributes(folder);
        if (!isPrivateFolder(found)) {
            throw new IOException(
                    describe(folder, found) + ": expected a folder of yours with rwx------");
        }
        return folder;
    }

    /** Whether {@link #existing} accepts the folder; false if there is none. */
    public static boolean isPrivateFolder(Path folder) throws IOException {
        try {
            return isPrivateFolder(attributes(folder));
        } catch (NoSuchFileException e) {
            return false;
        }
    }

    private static boolean isPrivateFolder(Map<String, Object> found) throws IOException {
        return Boolean.TRUE.equals(found.get("isDirectory"))
                && FOLDER_MODE.equals(found.get("permissions"))
                && user().equals(found.get("uid"));
    }

    /** Creates a file, open for writing. */
    public static FileChannel create(Path file) throws IOException {
        FileChannel channel =
                FileChannel.open(
                        file,
                        Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
                        PosixFilePermissions.asFileAttribute(FILE_MODE));
        try {
            Files.setPosixFilePermissions(file, FILE_MODE);
            return channel;
        } catch (IOException e) {
            channel.close();
            throw e;
        }
    }

    /** Opens a file that must be this user's, closed to others and without a second hard link. */
    public static FileChannel open(Path file, StandardOpenOption... how) throws IOException {
        // Checked before it is opened: opening a pipe would wait for its other end.
        Map<String, Object> found = attributes(file);
        if (!isPrivateFile(found)) {
            throw new IOException(
                    describe(file, found)
                            + ": expected a file of yours with rw------- and no second name");
        }
        OpenOption[] options = new OpenOption[how.length + 1];
        System.arraycopy(how, 0, options, 0, how.length);
        options[how.length] = LinkOption.NOFOLLOW_LINKS;
        return FileChannel.open(file, options);
    }

    /** Whether {@link #open} accepts the file; false if there is none. */
    public static boolean isPrivateFile(Path file) throws IOException {
        try {
            return isPrivateFile(attributes(file));
        } catch (NoSuchFileException e) {
            return false;
        }
    }

    private static boolean isPrivateFile(Map<String, Object> found) throws IOException {
        return Boolean.TRUE.equals(found.get("isRegularFile"))
                && FILE_MODE.equals(found.get("permissions"))
                && user().equals(found.get("uid"))
                && (int) found.get("nlink") <= 1;
    }

    private static Map<String, Object> attributes(Path file) throws IOException {
        return Files.readAttributes(
                file,
                "unix:isDirectory,isRegularFile,isSymbolicLink,permissions,mode,uid,nlink",
                LinkOption.NOFOLLOW_LINKS);
    }

    @SuppressWarnings("unchecked")
    private static String describe(Path file, Map<String, Object> found) {
        if (Boolean.TRUE.equals(found.get("isSymbolicLink"))) {
            return file + " is a symbolic link";
        }
        boolean plain = Boolean.TRUE.equals(found.get("isRegularFile"));
        return "%s has mode %s and owner %s%s"
                .formatted(
                        file,
                        PosixFilePermissions.toString(
                                (Set<PosixFilePermission>) found.get("permissions")),
                        found.get("uid"),
                        plain ? " and " + found.get("nlink") + " names" : "");
    }

    /**
     * Checks that only this user and root can replace what this user has in the folder, and the
     * folders above it. What others could replace is not private, whatever its mode.
     *
     * @return its path without links, since a link may lead to another folder next time
     */
    public static Path guarded(Path folder) throws IOException {
        Path absolute = folder.toAbsolutePath();
        Object user = user();
        requireGuarded(absolute, user);
        Path real = absolute.toRealPath();
        if (!real.equals(absolute)) {
            requireGuarded(real, user);
        }
        return real;
    }

    private static void requireGuarded(Path folder, Object user) throws IOException {
        if (folder.getParent() != null) {
            requireGuarded(folder.getParent(), user);
        }
        Map<String, Object> found =
                Files.readAttributes(
                        folder, "unix:isSymbolicLink,mode,uid", LinkOption.NOFOLLOW_LINKS);
        if (!found.get("uid").equals(user) && !found.get("uid").equals(SUPERUSER)) {
            throw new IOException(
                    """
                    %s belongs to user %s, who could replace what is in it: expected one of yours \
                    (user %s) or of root"""
                            .formatted(folder, found.get("uid"), user));
        }
        int mode = (int) found.get("mode");
        // The mode of a link means nothing.
        if (!Boolean.TRUE.equals(found.get("isSymbolicLink"))
                && (mode & WRITABLE_BY_OTHERS) != 0
                && (mode & STICKY) == 0) {
            throw new IOException(
                    """
                    %s has mode %s, so that others could replace what is in it: expected one that \
                    only its owner can write (chmod go-w) or with the sticky bit (chmod +t)"""
                            .formatted(folder, Integer.toOctalString(mode & ALL_BITS)));
        }
    }

    /**
     * A folder for a cache, created if necessary. It must be this user's, writable by nobody else,
     * and in a {@link #guarded} one. Others may read it.
     *
     * @return its path without links
     */
    public static Path cache(Path folder) throws IOException {
        Path absolute = folder.toAbsolutePath();
        Files.createDirectories(absolute, PosixFilePermissions.asFileAttribute(FOLDER_MODE));
        Map<String, Object> found = attributes(absolute.toRealPath());
        if (!isOwn(found)) {
            throw new IOException(
                    describe(absolute, found)
                            + ": expected a folder of yours that others cannot write (chmod go-w)");
        }
        return guarded(absolute);
    }

    private static boolean isOwn(Map<String, Object> found) throws IOException {
        return user().equals(found.get("uid"))
                && ((int) found.get("mode") & WRITABLE_BY_OTHERS) == 0;
    }

    /**
     * Creates or replaces a file atomically; a link of that name is replaced. Others must not be
     * able to write to the folder.
     */
    public static void write(Path file, byte[] bytes) throws IOException {
        Path temporary = file.resolveSibling(TemporaryFiles.newName());
        try (FileChannel channel =
                TemporaryFiles.create(temporary, PosixFilePermissions.asFileAttribute(FILE_MODE))) {
            // The umask may have removed permissions that the user needs.
            Files.setPosixFilePermissions(temporary, FILE_MODE);
            AtomicFile.writeAll(channel, bytes);
            TemporaryFiles.rename(temporary, file);
        } finally {
            TemporaryFiles.discard(temporary);
        }
    }

    /**
     * Reads a file, which must be this user's, not writable by others, and not a link.
     *
     * @param most the most bytes to read
     */
    public static byte[] read(Path file, int most) throws IOException {
        Map<String, Object> found = attributes(file);
        if (!Boolean.TRUE.equals(found.get("isRegularFile")) || !isOwn(found)) {
            throw new IOException(
                    describe(file, found) + ": expected a file of yours that others cannot write");
        }
        try (InputStream in = Files.newInputStream(file, LinkOption.NOFOLLOW_LINKS)) {
            return in.readNBytes(most);
        }
    }

    /** This user's id. Checked by owner, since root can open everything. */
    public static Object user() throws IOException {
        Path self = Path.of("/proc/self");
        if (Files.exists(self)) {
            return Files.getAttribute(self, "unix:uid");
        }
        Path own = Files.createTempFile("weft-", "-user");
        try {
            return Files.getAttribute(own, "unix:uid");
        } finally {
            Files.delete(own);
        }
    }
}
