package dev.weft.cli.view;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.report.PageData;
import dev.weft.report.RecordMaker;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RecordWatchTest {

    @TempDir Path folder;

    private Path record;

    @BeforeEach
    void name() {
        record = folder.resolve("r.json");
    }

    /** As commands write: the file is there whole, or the one before it is. */
    private static void replace(Path file, String text) throws IOException {
        Path part = Files.writeString(file.resolveSibling("part"), text);
        Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
    }

    private static String labelled(String label) {
        return new RecordMaker().label(label).json();
    }

    private static PageData.Progress progress(PageServer.Edition edition) {
        return edition.page().get().progress();
    }

    @Test
    void waitsForAFileThatIsNotThere() throws IOException {
        RecordWatch watch = new RecordWatch(List.of(record));
        PageServer.Edition waiting = watch.edition();
        assertEquals(
                new PageData.Progress("waiting for records", 0, 1, false, null), progress(waiting));
        assertEquals(List.of(), waiting.page().get().runs());
        assertEquals(waiting.version(), watch.edition().version(), "nothing new");
        replace(record, labelled("here"));
        PageServer.Edition there = watch.edition();
        assertTrue(there.version() > waiting.version());
        assertEquals("here", there.page().get().title());
        assertEquals("here", there.page().get().runs().getFirst().name());
        assertFalse(progress(there).ended(), "more may come");
        assertNull(progress(there).failed());
    }

    @Test
    void everyNewVersionIsShownAndNoneTwice() throws IOException {
        replace(record, labelled("one"));
        RecordWatch watch = new RecordWatch(List.of(record));
        long version = watch.edition().version();
        assertSame(watch.edition().page().get(), watch.edition().page().get(), "read once");
        FileTime time = Files.getLastModifiedTime(record);
        for (String label : List.of("two", "six")) {
            replace(record, labelled(label));
            // As if both were written within one tick of the file system's clock.
            Files.setLastModifiedTime(record, time);
            PageServer.Edition next = watch.edition();
            assertTrue(next.version() > version, label);
            assertEquals(label, next.page().get().title());
            version = next.version();
            assertEquals(version, watch.edition().version());
        }
        Files.delete(record);
        assertEquals("waiting for records", progress(watch.edition()).what());
    }

    @Test
    void aRecordThatCannotBeReadIsAnErrorUntilItCan() throws IOException {
        replace(record, "{\"schema\": \"weft.run/1\"");
        RecordWatch watch = new RecordWatch(List.of(record));
        PageServer.Edition broken = watch.edition();
        assertTrue(
                progress(broken).failed().startsWith("r.json: is not JSON in line 1"),
                progress(broken).failed());
        assertFalse(progress(broken).ended(), "the page asks on");
        assertEquals(List.of(), broken.page().get().runs());
        replace(record, labelled("whole"));
        assertEquals("whole", watch.edition().page().get().title());
        assertNull(progress(watch.edition()).failed());
        replace(record, "{\"schema\": \"weft.gather/1\"}");
        assertTrue(progress(watch.edition()).failed().contains("expected weft.run/1"));
    }

    @Test
    void severalAreComparedOnceAllAreThere() throws IOException {
        Path other = folder.resolve("other.json");
        RecordWatch watch = new RecordWatch(List.of(record, other));
        replace(other, labelled("other"));
        assertEquals(
                new PageData.Progress("waiting for records", 1, 2, false, null),
                progress(watch.edition()));
        replace(record, labelled("first"));
        assertEquals(
                List.of("first", "other"),
                watch.edition().page().get().runs().stream().map(run -> run.name()).toList());
    }
}
