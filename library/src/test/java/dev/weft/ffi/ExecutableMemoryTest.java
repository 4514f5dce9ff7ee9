package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.fabric.ChildJvm;
import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

@SuppressWarnings("restricted")
class ExecutableMemoryTest {

    private static final FunctionDescriptor OF_TWO =
            FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG);

    /** Two functions each: the sum of two longs, and the second of them. */
    private static final Map<String, String> CODE =
            Map.of(
                    // add x0, x0, x1; ret; mov x0, x1; ret
                    "aarch64", "0000018bc0035fd6e00301aac0035fd6",
                    // lea rax, [rdi+rsi]; ret; 3 times nop; mov rax, rsi; ret
                    "amd64", "488d0437c39090904889f0c3");

    @BeforeEach
    void thisMachineIsKnown() {
        assumeTrue(System.getProperty("os.name").equals("Linux"), "pages are Linux's");
        assumeTrue(CODE.containsKey(arch()), () -> "no code for " + arch());
    }

    private static String arch() {
        return System.getProperty("os.arch");
    }

    private static MethodHandle bind(ExecutableMemory memory, long entry) {
        return Linker.nativeLinker().downcallHandle(memory.entry(entry), OF_TWO);
    }

    private static byte[] code() {
        return HexFormat.of().parseHex(CODE.get(arch()));
    }

    @Test
    void codeIsCalledAtEachOfItsEntries() throws Throwable {
        ExecutableMemory memory = ExecutableMemory.of(code());
        MethodHandle sum = bind(memory, 0);
        MethodHandle second = bind(memory, 8);
        for (long i = 0; i < 20_000; i++) {
            assertEquals(i + 7, (long) sum.invokeExact(i, 7L));
            assertEquals(i, (long) second.invokeExact(3L, i));
        }
    }

    /** Many at once, on threads of their own: none sees another's code or an old cache line. */
    @Test
    void everyThreadRunsTheCodeThatItHasJustMade() throws Exception {
        List<Thread> threads =
                IntStream.range(0, 4)
                        .mapToObj(i -> new Thread(ExecutableMemoryTest::makeAndCall))
                        .toList();
        List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
        threads.forEach(t -> t.setUncaughtExceptionHandler((x, e) -> failures.add(e)));
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(List.of(), failures);
    }

    private static void makeAndCall() {
        for (int i = 0; i < 20; i++) {
            try {
                MethodHandle sum = bind(ExecutableMemory.of(code()), 0);
                assertEquals(i + 5L, (long) sum.invokeExact((long) i, 5L));
            } catch (Throwable e) {
                throw new AssertionError(e);
            }
        }
    }

    @Test
    void memoryIsNeverWritableAndExecutableAndLiesBetweenGuards() throws IOException {
        ExecutableMemory memory = ExecutableMemory.of(code());
        long first = memory.entry(0).address();
        List<String> maps = Files.readAllLines(Path.of("/proc/self/maps"));
        assertEquals("r-xp", permissions(maps, first));
        assertEquals("r-xp", permissions(maps, first + (64 << 10) - 1));
        assertEquals("---p", permissions(maps, first - 1));
        assertEquals("---p", permissions(maps, first + (64 << 10)));
        assertTrue(maps.stream().noneMatch(line -> line.contains("rwxp") && has(line, first)));
    }

    private static String permissions(List<String> maps, long address) {
        return maps.stream()
                .filter(line -> has(line, address))
                .map(line -> line.split(" ")[1])
                .findFirst()
                .orElse("unmapped");
    }

    private static boolean has(String line, long address) {
        String[] range = line.split(" ")[0].split("-");
        return Long.parseUnsignedLong(range[0], 16) <= address
                && address < Long.parseUnsignedLong(range[1], 16);
    }

    @Test
    void codeLargerThanAUnitIsWhole() throws Throwable {
        byte[] large = new byte[200_000];
        int at = 150_000;
        System.arraycopy(code(), 0, large, at, code().length);
        MethodHandle sum = bind(ExecutableMemory.of(large), at);
        assertEquals(5L, (long) sum.invokeExact(2L, 3L));
    }

    @Test
    void noCodeIsRefused() {
        var e =
                assertThrows(
                        IllegalArgumentException.class, () -> ExecutableMemory.of(new byte[0]));
        assertEquals("no code: expected a byte at least", e.getMessage());
    }

    @Test
    void aSystemThatRefusesIsToldInOneLine() {
        try (ChildJvm child =
                ChildJvm.start(List.of(), List.of("-Xint"), NoNewCode.class, Map.of())) {
            String told = child.awaitLine("told ");
            assumeTrue(!told.contains("knows no such refusal"), told);
            assertEquals(
                    "no executable memory: mprotect(executable) of 65536 bytes failed with errno"
                            + " 13",
                    told);
        }
    }
}
