package dev.weft.fabric.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.fabric.ChildJvm;
import dev.weft.files.PrivateFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Folders in shared memory are private, and none stays behind. */
class ShmJobTest {

    private static final Duration LONG = Duration.ofSeconds(60);

    @TempDir Path temporary;

    /** Starts in a folder of the test's own: other starts on this machine clean up too. */
    private ShmJob create() {
        return ShmJob.create(temporary);
    }

    private Map<String, String> environment() {
        return Map.of("WEFT_SHM_DIR", temporary.toString());
    }

    static String mode(Path file) throws IOException {
        return PosixFilePermissions.toString(
                Files.getPosixFilePermissions(file, LinkOption.NOFOLLOW_LINKS));
    }

    @Test
    void theFolderIsPrivateAndGoneAfterwards() throws IOException {
        Path folder;
        try (ShmJob job = create();
                ShmJob other = create()) {
            folder = job.folder();
            assertNotEquals(folder, other.folder());
            assertTrue(folder.toString().matches(".*/weft-[0-9]+-[0-9a-f]{32}"), "" + folder);
            assertNotEquals(
                    job.environment(0, 1, LONG).get("WEFT_TOKEN"),
                    other.environment(0, 1, LONG).get("WEFT_TOKEN"));
            assertTrue(folder.startsWith(temporary));
            assertEquals("rwx------", mode(folder));
            assertEquals("rw-------", mode(folder.resolve("starter.lock")));
            Files.createFile(folder.resolve("left-by-a-dead-rank"));
        }
        assertFalse(Files.exists(folder));
        try (Stream<Path> left = Files.list(temporary)) {
            assertEquals(List.of(), left.toList());
        }
    }

    @Test
    void theEnvironmentSaysWhoARankIs() {
        try (ShmJob job = create()) {
            Map<String, String> environment = job.environment(2, 5, Duration.ofSeconds(3));
            String token = environment.remove("WEFT_TOKEN");
            assertTrue(token.matches("[0-9a-f]{32}"), "128 bits");
            assertEquals(token, job.environment(0, 5, LONG).get("WEFT_TOKEN"), "on all ranks");
            assertEquals(
                    Map.of(
                            "WEFT_RANK", "2",
                            "WEFT_RANKS", "5",
                            "WEFT_JOB", job.folder().toString(),
                            "WEFT_DEADLINE_MS", "3000"),
                    environment);
        }
    }

    @Test
    void aFolderWhoseStarterWasKilledIsRemovedAndOneWhoseStarterLivesStays() {
        try (ChildJvm child = ChildJvm.start(JobChild.class, environment())) {
            Path folder = Path.of(child.awaitLine("folder "));
            create().close();
            assertTrue(Files.exists(folder), "its starter lives");
            child.kill();
            assertTrue(Files.exists(folder), "a killed starter cannot clean up");
            create().close();
            assertFalse(Files.exists(folder), "the next start does");
        }
    }

    /** A rank's lock keeps the folder alive, also when its starter is gone. */
    @Test
    void aFolderWithAHeldRankLockStays() throws IOException {
        Path folder;
        try (ChildJvm child = ChildJvm.start(JobChild.class, environment())) {
            folder = Path.of(child.awaitLine("folder "));
        }
        try (HeldLock lock = HeldLock.take(folder.resolve("rank-0.lock"))) {
            create().close();
            assertTrue(Files.exists(folder), lock + " is held");
        }
        create().close();
        assertFalse(Files.exists(folder));
    }

    /** Looking at a lock of one's own must not drop it, as a closed channel would do. */
    @Test
    void jobsOfOneProcessDoNotTakeEachOthersLocksAway() {
        try (ShmJob first = create();
                ShmJob second = create()) {
            try (ChildJvm child = ChildJvm.start(JobChild.class, environment(), "close")) {
                assertEquals(0, child.exitCode(), () -> String.join("\n", child.output()));
            }
            assertTrue(Files.exists(first.folder()), "another process's start cleaned it away");
            assertTrue(Files.exists(second.folder()));
        }
    }

    @Test
    void anUnfinishedFolderGetsAMinuteAndStrayFilesDoNoHarm() throws IOException {
        try (ShmJob job = create()) {
            Path base = job.folder().getParent();
            String user = job.folder().getFileName().toString().split("-")[1];
            Path stray = Files.createTempFile(base, "stray", ".txt");
            Path unfinished =
                    PrivateFiles.folder(
                            base.resolve("weft-" + user + "-new-test" + System.nanoTime()));
            create().close();
            assertTrue(Files.exists(unfinished), "its starter may be about to take the lock");
            FileTime old = FileTime.from(Instant.now().minus(Duration.ofMinutes(2)));
            Files.setLastModifiedTime(unfinished, old);
            create().close();
            assertFalse(Files.exists(unfinished));
            assertTrue(Files.exists(stray), "not a folder: not ours");
            Files.delete(stray);
        }
    }

    /** Else anybody could keep another user's starts from starting. */
    @Test
    void whatLooksLikeAFolderOfThisUsersButIsNotStaysAndDoesNoHarm() throws IOException {
        String prefix = "weft-" + PrivateFiles.user() + "-";
        Path open = Files.createDirectory(temporary.resolve(prefix + "open"));
        Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
        Path precious = Files.createDirectory(temporary.resolve("precious"));
        Files.createFile(precious.resolve("file"));
        Path link = Files.createSymbolicLink(temporary.resolve(prefix + "link"), precious);
        create().close();
        assertTrue(Files.exists(open));
        assertTrue(Files.exists(link));
        assertTrue(Files.exists(precious.resolve("file")), "no link is followed");
    }

    /** A lock that no rank has made keeps no folder alive, and is not opened. */
    @Test
    void aStaleFolderWithLinksInItIsRemovedAndTheirTargetsStay() throws IOException {
        Path stale = PrivateFiles.folder(temporary.resolve("weft-" + PrivateFiles.user() + "-x"));
        Path precious = Files.createFile(temporary.resolve("precious"));
        Files.createSymbolicLink(stale.resolve("starter.lock"), precious);
        Files.createLink(stale.resolve("rank-0.lock"), precious);
        create().close();
        assertFalse(Files.exists(stale));
        assertTrue(Files.exists(precious));
    }

    @Test
    void noLockAndNoPartIsALinkOrAnotherUsers() throws IOException {
        Path folder = PrivateFiles.folder(temporary.resolve("job"));
        Path file = folder.resolve("rank-0.lock");
        PrivateFiles.create(file).close();
        Path link = Files.createSymbolicLink(folder.resolve("rank-1.lock"), file);
        assertThrows(IOException.class, () -> HeldLock.take(link));
        assertThrows(IOException.class, () -> HeldLock.isHeld(link));
        Path target = temporary.resolve("made-by-nobody");
        Path nowhere = Files.createSymbolicLink(folder.resolve("rank-2.lock"), target);
        assertThrows(IOException.class, () -> HeldLock.take(nowhere));
        assertThrows(IOException.class, () -> SharedParts.reserve(nowhere, 100));
        assertFalse(Files.exists(target), "nothing is made through a link");
        assumeTrue(PrivateFiles.user().equals(0), "only the superuser can give a file away");
        Files.setAttribute(file, "unix:uid", 12345);
        assertThrows(IOException.class, () -> HeldLock.take(file));
    }

    @Test
    void aFolderThatOthersCanReadIsRefused() throws IOException {
        Path open = Files.createDirectory(temporary.resolve("open"));
        Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxr-xr-x"));
        String message =
                assertThrows(
                                RuntimeException.class,
                                () ->
                                        Rendezvous.join(
                                                open, 0, 1, RunToken.NONE, Duration.ofSeconds(5)))
                        .getMessage();
        assertTrue(message.contains(open + " has mode rwxr-xr-x"), message);
        assertTrue(message.contains("expected a folder of yours with rwx------"), message);
    }

    @Test
    void aLinkOrAFileInPlaceOfTheFolderIsRefused() throws IOException {
        Path target = PrivateFiles.folder(temporary.resolve("target"));
        Path link = Files.createSymbolicLink(temporary.resolve("link"), target);
        String message =
                assertThrows(IOException.class, () -> PrivateFiles.folder(link)).getMessage();
        assertTrue(message.startsWith(link + " is a symbolic link: expected"), message);
        Path file = Files.createFile(temporary.resolve("file"));
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"));
        assertThrows(IOException.class, () -> PrivateFiles.folder(file));
    }

    @Test
    void aFolderOfAnotherUserIsRefusedEvenWhereItCouldBeUsed() throws IOException {
        boolean superuser = Files.getAttribute(Path.of("/proc/self"), "unix:uid").equals(0);
        assumeTrue(superuser, "only the superuser can give a folder away");
        Path trap = PrivateFiles.folder(temporary.resolve("trap"));
        Files.setAttribute(trap, "unix:uid", 12345);
        String message =
                assertThrows(IOException.class, () -> PrivateFiles.folder(trap)).getMessage();
        assertTrue(message.contains("owner 12345"), message);
    }

    @Test
    void theFolderForRegionsCanBeChosen() {
        try (ChildJvm child = ChildJvm.start(JobChild.class, environment(), "close")) {
            assertTrue(child.awaitLine("folder ").startsWith(temporary.toString()));
            assertEquals(0, child.exitCode());
        }
        Path missing = temporary.resolve("missing");
        Map<String, String> wrong = Map.of("WEFT_SHM_DIR", missing.toString());
        try (ChildJvm child = ChildJvm.start(JobChild.class, wrong, "close")) {
            String message = child.awaitLine("Exception in thread \"main\" ");
            assertTrue(message.contains("cannot prepare shared memory: " + missing), message);
            assertEquals(1, child.exitCode());
        }
    }
}
