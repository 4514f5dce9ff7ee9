package dev.weft.cli.console;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import org.junit.jupiter.api.Test;

class ErrorMessageTest {

    @Test
    void aMessageBecomesOneLineThatATerminalOnlyShows() {
        assertEquals("one", ErrorMessage.oneLine("one\ntwo"));
        assertEquals("two", ErrorMessage.oneLine("\n  \r\ntwo"));
        assertEquals("a?b?c?d", ErrorMessage.oneLine("a\u001bb\u009bc\u2028d"));
        assertEquals("a?b?c", ErrorMessage.oneLine("a\u202eb\u2066c"));
        assertEquals("failed", ErrorMessage.oneLine(""));
        assertEquals("x".repeat(900), ErrorMessage.oneLine("x".repeat(900)));
        assertEquals("x".repeat(897) + "...", ErrorMessage.oneLine("x".repeat(901)));
    }

    @Test
    void theLimitThatAnErrorComesFromIsNamed() {
        assertEquals("a.npy: cut short", ErrorMessage.of(new IOException("a.npy: cut short")));
        String files = ErrorMessage.of(new IOException("a.npy: Too many open files"));
        assertTrue(
                files.matches(
                        "a.npy: Too many open files: the limit of open files \\(ulimit -n\\) is"
                                + " .+"),
                files);
        assertEquals(files, ErrorMessage.of(new IOException(files)), "named once");
        assertEquals(files, ErrorMessage.of(new IOException("a.npy: Too many open files \n")));
        String threads = ErrorMessage.of(new OutOfMemoryError("unable to create native thread"));
        assertTrue(
                threads.matches(
                        "unable to create native thread: the limit of processes and threads"
                                + " \\(ulimit -u\\) is .+, that of the cgroup \\(pids.max\\) .+"),
                threads);
    }
}
