package dev.weft.ffi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.Arrays;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class AffinityTest {

    @BeforeEach
    void assumeAvailable() {
        assumeTrue(
                Affinity.unavailable().isEmpty(),
                () -> "threads cannot be pinned: " + Affinity.unavailable().orElseThrow());
    }

    /** A thread of its own, so that no other test runs on fewer CPUs afterwards. */
    private static void inThread(Thread.Builder kind, Executable test) throws Exception {
        FutureTask<Void> task =
                new FutureTask<>(
                        () -> {
                            try {
                                test.execute();
                            } catch (Exception | Error e) {
                                throw e;
                            } catch (Throwable e) {
                                throw new AssertionError(e);
                            }
                            return null;
                        });
        kind.start(task);
        try {
            task.get();
        } catch (ExecutionException e) {
            throw new AssertionError(e.getCause());
        }
    }

    @Test
    void aThreadStaysWhereItIsPinned() throws Exception {
        inThread(
                Thread.ofPlatform(),
                () -> {
                    int[] before = Affinity.allowed();
                    assertTrue(before.length > 0);
                    for (int cpu : new int[] {before[0], before[before.length - 1]}) {
                        assertTrue(Affinity.pin(cpu), "CPU " + cpu);
                        assertArrayEquals(new int[] {cpu}, Affinity.allowed());
                    }
                });
    }

    @Test
    void onlyTheCallingThreadIsPinned() throws Exception {
        int[] before = Affinity.allowed();
        inThread(Thread.ofPlatform(), () -> assertTrue(Affinity.pin(before[0])));
        assertArrayEquals(before, Affinity.allowed());
    }

    @Test
    void aCpuThatIsNotThereIsToldAndChangesNothing() throws Exception {
        inThread(
                Thread.ofPlatform(),
                () -> {
                    int[] before = Affinity.allowed();
                    int missing = 1023;
                    assumeTrue(
                            Arrays.stream(before).noneMatch(cpu -> cpu == missing),
                            "this machine has 1024 CPUs");
                    assertFalse(Affinity.pin(missing));
                    assertArrayEquals(before, Affinity.allowed());
                });
    }

    @Test
    void numbersOutsideOfTheSetAndVirtualThreadsAreRefused() throws Exception {
        assertThrows(IllegalArgumentException.class, () -> Affinity.pin(-1));
        assertThrows(IllegalArgumentException.class, () -> Affinity.pin(1024));
        inThread(
                Thread.ofVirtual(),
                () -> assertThrows(IllegalStateException.class, () -> Affinity.pin(0)));
    }
}
