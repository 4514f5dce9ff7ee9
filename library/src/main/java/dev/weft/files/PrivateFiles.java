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
 * Folders and files that are this user's alone: made so whatever the umask, and used only if found
 * so. Links are not followed. A file is looked at by its name, which is safe because nobody else
 * can change what a name in a private folder stands for. Any thread may call.
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
     * Makes the folder, or accepts one that {@link #existing} accepts.
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
        // The umask may have taken away what the user needs.
        Files.setPosixFilePermissions(real, FOLDER_MODE);
        return real;
    }

    /**
     * The folder, which must be this user's and closed to others, in a {@link #guarded} one.
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

    /** Whether {@link #existing} accepts it; what is not there is not accepted. */
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

    /** A new file, open for writing. */
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

    /** Opens a file that must be this user's, closed to others and known by no other name. */
    public static FileChannel open(Path file, StandardOpenOption... how) throws IOException {
        // Before it is opened: to open a pipe would wait for its other end.
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

    /** Whether {@link #open} accepts it; what is not there is not accepted. */
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
        return file
                + " has mode "
                + PosixFilePermissions.toString((Set<PosixFilePermission>) found.get("permissions"))
                + " and owner "
                + found.get("uid")
                + (plain ? " and " + found.get("nlink") + " names" : "");
    }

    /**
     * The folder, if nobody but this user and the superuser can replace what this user has in it,
     * or any folder above it: what others could swap is not private, however private it looks.
     *
     * @return its path without links: what a link leads to may be another folder next time
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
                    folder
                            + " belongs to user "
                            + found.get("uid")
                            + ", who could replace what is in it: expected one of yours (user "
                            + user
                            + ") or of root");
        }
        int mode = (int) found.get("mode");
        // Everybody can write a link, which means nothing.
        if (!Boolean.TRUE.equals(found.get("isSymbolicLink"))
                && (mode & WRITABLE_BY_OTHERS) != 0
                && (mode & STICKY) == 0) {
            throw new IOException(
                    folder
                            + " has mode "
                            + Integer.toOctalString(mode & ALL_BITS)
                            + ", so that others could replace what is in it: expected one that only"
                            + " its owner can write (chmod go-w) or with the sticky bit (chmod"
                            + " +t)");
        }
    }

    /**
     * A folder for what may be computed again, made if need be: it must be this user's, writable by
     * nobody else, and in a {@link #guarded} one. Others may read it.
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
     * Puts a file there, or replaces what has its name, be it a link; nobody ever sees half a file.
     * The folder must be one that others cannot write.
     */
    public static void write(Path file, byte[] bytes) throws IOException {
        Path part = file.resolveSibling(TemporaryFiles.newName());
        try (FileChannel channel =
                TemporaryFiles.create(part, PosixFilePermissions.asFileAttribute(FILE_MODE))) {
            // The umask may have taken away what the user needs.
            Files.setPosixFilePermissions(part, FILE_MODE);
            AtomicFile.writeAll(channel, bytes);
            TemporaryFiles.rename(part, file);
        } finally {
            TemporaryFiles.discard(part);
        }
    }

    /**
     * What a file says that must be this user's, not writable by others, and no link.
     *
     * @param most how many bytes are read
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

    /** The user's number: the superuser may open everything, also a trap. */
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
