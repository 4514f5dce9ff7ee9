package dev.weft.fabric.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.fabric.ThreadGroupRun;
import dev.weft.ffi.Futex;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Both ways to block on a word keep the same promises. */
class WordWaiterTest {

    enum Kind {
        FUTEX,
        PARKING;

        WordWaiter create() {
            if (this == PARKING) {
                return new WordWaiter.ParkingWaiter();
            }
            assumeTrue(Futex.unavailable().isEmpty(), () -> Futex.unavailable().orElseThrow());
            return new WordWaiter.FutexWaiter();
        }
    }

    @ParameterizedTest
    @EnumSource
    void aWordThatHasChangedDoesNotBlock(Kind kind) {
        WordWaiter waiter = kind.create();
        MemorySegment part = Arena.ofAuto().allocate(128, 128);
        Words.intVolatile(part, 64, 5);
        for (int i = 0; i < 1000; i++) {
            waiter.block(part, 64, 4);
            waiter.wakeAll(part, 64);
        }
        assertEquals(5, Words.intAcquire(part, 64));
    }

    /** Nobody wakes it: the slice ends by itself, so that the waiter can look after its peers. */
    @ParameterizedTest
    @EnumSource
    void aBlockEndsWithItsSlice(Kind kind) {
        WordWaiter waiter = kind.create();
        MemorySegment part = Arena.ofAuto().allocate(64, 64);
        waiter.block(part, 0, 0);
        assertEquals(0, Words.intAcquire(part, 0));
    }

    /** Two threads hand a word to and fro, blocking each time; negative values too. */
    @ParameterizedTest
    @EnumSource
    void aChangeEndsTheBlock(Kind kind) {
        WordWaiter waiter = kind.create();
        int rounds = kind == Kind.FUTEX ? 4000 : 400;
        int start = -rounds / 2;
        MemorySegment part = Arena.ofAuto().allocate(256, 128);
        Words.intVolatile(part, 0, start);
        Words.intVolatile(part, 128, start);
        ThreadGroupRun threads = new ThreadGroupRun();
        for (int t = 0; t < 2; t++) {
            long own = 128L * t;
            long other = 128 - own;
            boolean first = t == 0;
            threads.start(
                    () -> {
                        for (int i = start + 1; i <= start + rounds; i++) {
                            if (first) {
                                change(waiter, part, other, i);
                            }
                            awaitValue(waiter, part, own, i);
                            if (!first) {
                                change(waiter, part, other, i);
                            }
                        }
                    });
        }
        threads.join();
        assertEquals(start + rounds, Words.intAcquire(part, 0));
    }

    private static void change(WordWaiter waiter, MemorySegment part, long at, int value) {
        Words.intVolatile(part, at, value);
        waiter.wakeAll(part, at);
    }

    private static void awaitValue(WordWaiter waiter, MemorySegment part, long at, int value) {
        for (int seen = Words.intVolatile(part, at);
                seen - value < 0;
                seen = Words.intVolatile(part, at)) {
            waiter.block(part, at, seen);
        }
    }

    @ParameterizedTest
    @EnumSource
    void oneChangeWakesAllWhoWait(Kind kind) {
        WordWaiter waiter = kind.create();
        MemorySegment part = Arena.ofAuto().allocate(64, 64);
        AtomicInteger waiting = new AtomicInteger();
        ThreadGroupRun threads = new ThreadGroupRun();
        for (int t = 0; t < 8; t++) {
            threads.start(
                    () -> {
                        waiting.incrementAndGet();
                        awaitValue(waiter, part, 0, 1);
                    });
        }
        while (waiting.get() < 8) {
            Thread.onSpinWait();
        }
        change(waiter, part, 0, 1);
        threads.join();
        assertTrue(Words.intAcquire(part, 0) == 1);
    }
}
