package dev.weft.files;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.fabric.ChildJvm;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What is the user's alone, and what only looks so. */
class PrivateFilesTest {

    @TempDir Path temporary;

    private Path folder() throws IOException {
        return PrivateFiles.folder(temporary.resolve("job"));
    }

    private Path file() throws IOException {
        Path file = folder().resolve("rank-0.lock");
        PrivateFiles.create(file).close();
        return file;
    }

    private static void mode(Path file, String mode) throws IOException {
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(mode));
    }

    private static String mode(Path file) throws IOException {
        return PosixFilePermissions.toString(
                Files.getPosixFilePermissions(file, LinkOption.NOFOLLOW_LINKS));
    }

    private static String refusal(Path file) throws IOException {
        assertFalse(PrivateFiles.isPrivateFile(file));
        return assertThrows(
                        IOException.class, () -> PrivateFiles.open(file, StandardOpenOption.READ))
                .getMessage();
    }

    @Test
    void aFileOfOnesOwnIsOpened() throws IOException {
        Path file = file();
        assertEquals("rw-------", mode(file));
        assertTrue(PrivateFiles.isPrivateFile(file));
        try (FileChannel channel = PrivateFiles.open(file, StandardOpenOption.READ)) {
            assertEquals(0, channel.size());
        }
        assertThrows(IOException.class, () -> PrivateFiles.create(file), "not a new one");
        Path missing = temporary.resolve("missing");
        assertFalse(PrivateFiles.isPrivateFile(missing));
        assertFalse(PrivateFiles.isPrivateFolder(missing));
        assertThrows(IOException.class, () -> PrivateFiles.folder(Path.of("/")));
        assertThrows(
                NoSuchFileException.class,
                () -> PrivateFiles.open(missing, StandardOpenOption.READ));
    }

    @ParameterizedTest
    @ValueSource(strings = {"rw-r-----", "rw----r--", "rw--w----", "rwx------", "r--------"})
    void aFileOfAnotherModeIsRefused(String mode) throws IOException {
        Path file = file();
        mode(file, mode);
        String message = refusal(file);
        assertTrue(message.startsWith(file + " has mode " + mode), message);
        assertTrue(message.endsWith("expected a file of yours with rw------- and no second name"));
    }

    @Test
    void aFileWithASecondNameIsRefused() throws IOException {
        Path file = file();
        Files.createLink(temporary.resolve("second"), file);
        String message = refusal(file);
        assertTrue(message.contains("and 2 names: expected"), message);
        Files.delete(temporary.resolve("second"));
        assertTrue(PrivateFiles.isPrivateFile(file));
    }

    @Test
    void aLinkIsRefusedWhereverItLeads() throws IOException {
        Path link = folder().resolve("rank-1.lock");
        Files.createSymbolicLink(link, file());
        assertTrue(refusal(link).startsWith(link + " is a symbolic link: expected"));
        Path nowhere = folder().resolve("rank-2.lock");
        Path target = temporary.resolve("made-by-nobody");
        Files.createSymbolicLink(nowhere, target);
        assertThrows(IOException.class, () -> PrivateFiles.create(nowhere));
        assertFalse(Files.exists(target), "nothing is made through a link");
    }

    @Test
    void whatIsNoFileIsRefusedWithoutAWait() throws Exception {
        Path folder = Files.createDirectory(folder().resolve("w-0-0"));
        assertTrue(refusal(folder).startsWith(folder + " has mode "));
        Path pipe = folder().resolve("w-0-1");
        Process mkfifo = new ProcessBuilder("mkfifo", "-m", "600", pipe.toString()).start();
        assumeTrue(mkfifo.waitFor() == 0, "no mkfifo here");
        assertTrue(refusal(pipe).startsWith(pipe + " has mode rw-------"));
    }

    @Test
    void whatIsAnotherUsersIsRefusedEvenWhereItCouldBeOpened() throws IOException {
        assumeTrue(PrivateFiles.user().equals(0), "only the superuser can give a file away");
        Path file = file();
        Files.setAttribute(file, "unix:uid", 12345);
        String message = refusal(file);
        assertTrue(message.contains("owner 12345"), message);
    }

    @ParameterizedTest
    @CsvSource({
        "rwxrwxrwx, false, 777",
        "rwx----w-, false, 702",
        "rwxrwx---, false, 770",
        "rwxrwxrwx, true,",
        "rwxr-xr-x, false,",
        "rwx------, false,"
    })
    void aParentInWhichOthersCouldReplaceTheFolderIsRefused(
            String mode, boolean sticky, String refused) throws Exception {
        Path parent = Files.createDirectory(temporary.resolve("shared"));
        mode(parent, mode);
        if (sticky) {
            assertEquals(0, new ProcessBuilder("chmod", "+t", "" + parent).start().waitFor());
        }
        if (refused == null) {
            assertTrue(Files.exists(PrivateFiles.folder(parent.resolve("job"))));
        } else {
            assertEquals(
                    parent
                            + " has mode "
                            + refused
                            + ", so that others could replace what is in it: expected one that only"
                            + " its owner can write (chmod go-w) or with the sticky bit (chmod +t)",
                    folderRefusal(parent));
        }
    }

    private static String folderRefusal(Path parent) throws IOException {
        String message =
                assertThrows(IOException.class, () -> PrivateFiles.folder(parent.resolve("job")))
                        .getMessage();
        assertFalse(Files.exists(parent.resolve("job")));
        return message;
    }

    @Test
    void aFolderFurtherUpInWhichOthersCouldReplaceItIsRefused() throws IOException {
        Path shared = Files.createDirectory(temporary.resolve("shared"));
        Path mine = Files.createDirectory(shared.resolve("mine"));
        Path link = Files.createSymbolicLink(temporary.resolve("link"), mine);
        mode(mine, "rwxr-xr-x");
        mode(shared, "rwxrwxr-x");
        assertTrue(folderRefusal(mine).startsWith(shared + " has mode 775, so that others could"));
        assertTrue(folderRefusal(link).startsWith(shared + " has mode 775, so that others could"));
        Path job = mine.resolve("job");
        Files.createDirectory(job);
        mode(job, "rwx------");
        String message =
                assertThrows(IOException.class, () -> PrivateFiles.existing(job)).getMessage();
        assertTrue(message.startsWith(shared + " has mode 775"), message);
    }

    /** Its owner can rename what is in it, also where the sticky bit is set. */
    @Test
    void aFolderFurtherUpThatIsAnotherUsersIsRefused() throws Exception {
        assumeTrue(PrivateFiles.user().equals(0), "only the superuser can give a folder away");
        Path theirs = Files.createDirectory(temporary.resolve("theirs"));
        Path shared = Files.createDirectory(theirs.resolve("shared"));
        assertEquals(0, new ProcessBuilder("chmod", "1777", "" + shared).start().waitFor());
        Files.setAttribute(theirs, "unix:uid", 12345);
        String refusal =
                " belongs to user 12345, who could replace what is in it: expected one of yours"
                        + " (user 0) or of root";
        assertEquals(theirs + refusal, folderRefusal(shared));
        Path mine = Files.createDirectory(temporary.resolve("mine"));
        Path leads = Files.createSymbolicLink(theirs.resolve("link"), mine);
        assertEquals(theirs + refusal, folderRefusal(leads));
        Files.setAttribute(theirs, "unix:uid", 0);
        Files.setAttribute(leads, "unix:uid", 12345, LinkOption.NOFOLLOW_LINKS);
        assertEquals(leads + refusal, folderRefusal(leads));
        Files.setAttribute(shared, "unix:uid", 12345);
        assertEquals(shared + refusal, folderRefusal(shared));
        Files.setAttribute(shared, "unix:uid", 0);
        assertTrue(Files.exists(PrivateFiles.folder(shared.resolve("job"))));
    }

    @Test
    void aLinkIsNeitherWrittenThroughNorRead() throws IOException {
        Path precious = Files.writeString(temporary.resolve("precious"), "precious");
        Path link = Files.createSymbolicLink(folder().resolve("report-0"), precious);
        String message =
                assertThrows(IOException.class, () -> PrivateFiles.read(link, 100)).getMessage();
        assertTrue(message.startsWith(link + " is a symbolic link: expected a file"), message);
        PrivateFiles.write(link, new byte[] {1, 2, 3});
        assertEquals("precious", Files.readString(precious));
        assertFalse(Files.isSymbolicLink(link), "the file has taken the place of the link");
        assertArrayEquals(new byte[] {1, 2}, PrivateFiles.read(link, 2));
        try (var left = Files.list(link.getParent())) {
            assertEquals(List.of(link), left.toList());
        }
    }

    @Test
    void whatOthersCouldHaveWrittenIsNotRead() throws IOException {
        Path file = file();
        mode(file, "rw-r--r--");
        assertEquals(0, PrivateFiles.read(file, 100).length);
        mode(file, "rw-rw-r--");
        String message =
                assertThrows(IOException.class, () -> PrivateFiles.read(file, 100)).getMessage();
        assertTrue(message.startsWith(file + " has mode rw-rw-r-- and owner "), message);
        assertTrue(message.endsWith("expected a file of yours that others cannot write"), message);
        assertThrows(IOException.class, () -> PrivateFiles.read(file.getParent(), 100));
        assumeTrue(PrivateFiles.user().equals(0), "only the superuser can give a file away");
        mode(file, "rw-------");
        Files.setAttribute(file, "unix:uid", 12345);
        assertThrows(IOException.class, () -> PrivateFiles.read(file, 100));
    }

    @Test
    void aCacheIsTheUsersAndOthersMayReadIt() throws Exception {
        Path cache = PrivateFiles.cache(temporary.resolve("caches").resolve("weft"));
        assertEquals("rwx------", mode(cache));
        mode(cache, "rwxr-xr-x");
        assertEquals(cache, PrivateFiles.cache(cache));
        assertEquals(0, new ProcessBuilder("chmod", "1777", "" + cache).start().waitFor());
        String message =
                assertThrows(IOException.class, () -> PrivateFiles.cache(cache)).getMessage();
        assertTrue(message.startsWith(cache + " has mode rwxrwxrwx and owner "), message);
        assertTrue(
                message.endsWith(
                        ": expected a folder of yours that others cannot write (chmod go-w)"));
        mode(cache, "rwx------");
        mode(cache.getParent(), "rwxrwx---");
        assertThrows(IOException.class, () -> PrivateFiles.cache(cache));
        assumeTrue(PrivateFiles.user().equals(0), "only the superuser can give a folder away");
        mode(cache.getParent(), "rwx------");
        Files.setAttribute(cache, "unix:uid", 12345);
        assertThrows(IOException.class, () -> PrivateFiles.cache(cache));
    }

    /** The system's shared memory may be a link, as /dev/shm is on some. */
    @Test
    void theParentMayBeALink() throws IOException {
        Path real = Files.createDirectory(temporary.resolve("real"));
        Path link = Files.createSymbolicLink(temporary.resolve("shm"), real);
        Path folder = PrivateFiles.folder(link.resolve("job"));
        assertEquals("rwx------", mode(folder));
        assertTrue(Files.exists(real.resolve("job")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"0000", "0077", "0777", "0277"})
    void theUmaskChangesNothing(String umask) throws Exception {
        try (ChildJvm child =
                ChildJvm.start(
                        List.of("sh", "-c", "umask " + umask + "; exec \"$0\" \"$@\""),
                        List.of(),
                        ModesChild.class,
                        Map.of(),
                        temporary.toString())) {
            assertEquals("rwx------ rw-------", child.awaitLine("modes "));
            assertEquals(0, child.exitCode());
        }
    }

    /** Tells the modes of what it makes. */
    static final class ModesChild {

        private ModesChild() {}

        public static void main(String[] args) throws IOException {
            Path folder = PrivateFiles.folder(Path.of(args[0], "job"));
            Path file = folder.resolve("file");
            PrivateFiles.create(file).close();
            System.out.println("modes " + mode(folder) + " " + mode(file));
        }
    }
}
