package dev.weft.process;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

class UninterruptiblyTest {

    @Test
    void anInterruptIsPassedOnWhenAllHaveEnded() {
        Thread caller = Thread.currentThread();
        Thread first = Thread.ofPlatform().start(caller::interrupt);
        Thread last =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    // The caller waits, has been interrupted, and waits again.
                                    while (caller.getState() != Thread.State.WAITING
                                            || first.isAlive()) {
                                        LockSupport.parkNanos(1_000_000);
                                    }
                                });
        Uninterruptibly.join(last, first);
        assertFalse(first.isAlive() || last.isAlive());
        assertTrue(Thread.interrupted());
        Uninterruptibly.join(first);
        assertFalse(Thread.interrupted());
    }
}
