package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class ProcessStatesTest {

    /** Its first thread ends, the other one waits for its input to end. */
    private static final String WITHOUT_FIRST_THREAD =
            """
            import ctypes, sys, threading
            def rest():
                print(flush=True)
                sys.stdin.read()
            threading.Thread(target=rest).start()
            ctypes.CDLL(None).pthread_exit(None)
            """;

    @Test
    @Timeout(60)
    void aProcessRunsAsLongAsAnyOfItsThreads() throws Exception {
        Process process;
        try {
            process = new ProcessBuilder("python3", "-c", WITHOUT_FIRST_THREAD).start();
        } catch (IOException e) {
            assumeTrue(false, "no python3: " + e.getMessage());
            return;
        }
        try {
            assertEquals('\n', process.getInputStream().read());
            List<ProcessHandle> processes = List.of(process.toHandle());
            for (int i = 0; i < 20; i++) {
                assertTrue(ProcessStates.runs(process.toHandle()));
                ProcessStates.awaitGone(processes, Duration.ofMillis(10));
            }
            process.getOutputStream().close();
            process.waitFor();
            assertFalse(ProcessStates.runs(process.toHandle()));
        } finally {
            process.destroyForcibly();
        }
    }
}
