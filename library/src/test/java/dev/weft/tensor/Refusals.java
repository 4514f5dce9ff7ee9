package dev.weft.tensor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.function.Executable;

/** Checks of the messages with which files are refused. */
final class Refusals {

    private Refusals() {}

    /** The action is refused in one line that starts with the name and contains all parts. */
    static void assertRefused(Object name, Executable action, String... parts) {
        IllegalArgumentException refusal = assertThrows(IllegalArgumentException.class, action);
        String message = refusal.getMessage();
        assertSame(IllegalArgumentException.class, refusal.getClass(), message);
        assertEquals(1, message.lines().count(), message);
        assertTrue(message.startsWith(name + ": "), message);
        for (String part : parts) {
            assertTrue(message.contains(part), message + " lacks " + part);
        }
    }
}
