package dev.weft.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class CallThreadTest {

    @Test
    void theTaskRunsOnceInEveryCallThatIsStarted() {
        List<Integer> calls = new ArrayList<>();
        try (CallThread thread = new CallThread("calls", calls::add, e -> {})) {
            thread.await();
            for (int call : new int[] {1, 2, 5, 6}) {
                thread.start(call);
                thread.await();
                assertEquals(call, calls.getLast());
            }
        }
        assertEquals(List.of(1, 2, 5, 6), calls);
    }

    @Test
    void aTaskThatThrowsEndsItsCallAndServesTheNext() {
        AtomicReference<Throwable> failure = new AtomicReference<>();
        List<Integer> calls = new ArrayList<>();
        RuntimeException broken = new IllegalStateException("broken");
        try (CallThread thread =
                new CallThread(
                        "failing",
                        call -> {
                            if (call == 1) {
                                throw broken;
                            }
                            calls.add(call);
                        },
                        failure::set)) {
            thread.start(1);
            thread.await();
            assertSame(broken, failure.get());
            thread.start(2);
            thread.await();
        }
        assertEquals(List.of(2), calls);
    }

    @Test
    void anInterruptIsPassedOnAfterTheCall() {
        List<Integer> calls = new ArrayList<>();
        try (CallThread thread = new CallThread("interrupted", calls::add, e -> {})) {
            Thread.currentThread().interrupt();
            thread.start(1);
            thread.await();
            assertTrue(Thread.interrupted());
            assertEquals(List.of(1), calls);
        }
    }
}
