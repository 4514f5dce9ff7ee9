package dev.weft.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.Test;

class TimeSliceTest {

    private static final boolean LINUX = System.getProperty("os.name").equals("Linux");

    @Test
    void linuxHearsOfIt() throws Exception {
        assumeTrue(LINUX, "needs Linux");
        boolean[] heard = new boolean[1];
        // A thread of its own: those of the tests stay as they are.
        Thread thread = Thread.ofPlatform().start(() -> heard[0] = TimeSlice.request(200_000));
        thread.join();
        assertTrue(heard[0]);
    }

    @Test
    void otherSystemsDoNot() {
        assumeTrue(!LINUX, "is Linux");
        assertEquals(false, TimeSlice.request(200_000));
    }
}
