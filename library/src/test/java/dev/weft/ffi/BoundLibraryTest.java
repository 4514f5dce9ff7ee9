package dev.weft.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.foreign.Linker;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class BoundLibraryTest {

    private static BoundLibrary libc() {
        return BoundLibrary.load(
                "libc",
                "ask a friend",
                code -> "CODE_" + code,
                () -> Linker.nativeLinker().defaultLookup());
    }

    @Test
    void aFunctionIsCalledAndItsFailureNamesLibraryFunctionArgumentsAndCode() {
        NativeFunction abs = libc().function("abs", "I");
        assertEquals(5, abs.call(-5));
        NativeCallException failure = abs.failed(5, "-5");
        assertEquals("libc: abs(-5) failed: 5 CODE_5", failure.getMessage());
    }

    @Test
    void aVersionedSymbolIsToldByTheNameThatTheHeadersGiveIt() {
        NativeFunction function = libc().function("cuMemAlloc_v2", "PP");
        NativeCallException failure = function.failed(2, "16 bytes", "line one\nline two");
        assertEquals(
                "libc: cuMemAlloc(16 bytes) failed: 2 CODE_2\nline one\nline two",
                failure.getMessage());
    }

    @Test
    void aSymbolThatIsMissingIsToldWhenItIsCalledAndNoEarlier() {
        BoundLibrary libc = libc();
        assertEquals(Optional.empty(), libc.unavailable());
        assertEquals(Optional.empty(), libc.unavailable("abs"));
        String why = "libc: this version has no weft_nothing (ask a friend)";
        assertEquals(Optional.of(why), libc.unavailable("weft_nothing"));
        NativeFunction missing = libc.function("weft_nothing", "PI");
        for (int call = 0; call < 2; call++) {
            var e = assertThrows(IllegalStateException.class, () -> missing.call(1L, 2));
            assertEquals(why, e.getMessage());
        }
    }

    private static BoundLibrary unloadable(RuntimeException cause) {
        return BoundLibrary.load(
                "libx",
                "buy it",
                String::valueOf,
                () -> {
                    throw cause;
                });
    }

    @Test
    void aLibraryThatDoesNotLoadIsToldAtEveryCall() {
        var cause = new IllegalArgumentException("no such file");
        BoundLibrary library = unloadable(cause);
        assertEquals(Optional.of("no such file (buy it)"), library.unavailable());
        NativeFunction function = library.function("x", "P");
        for (int call = 0; call < 2; call++) {
            var e = assertThrows(IllegalStateException.class, () -> function.call(1L));
            assertEquals("libx: no such file (buy it)", e.getMessage());
            assertSame(cause, e.getCause());
        }
    }

    @Test
    void aLibraryThatRefusesItsFirstCallIsAsGoodAsMissing() {
        BoundLibrary refused =
                libc().startedBy(
                                library -> {
                                    throw library.function("abs", "I").failed(100, "0");
                                });
        String why = "libc: abs(0) failed: 100 CODE_100 (ask a friend)";
        assertEquals(Optional.of(why), refused.unavailable());
        NativeFunction abs = refused.function("abs", "I");
        var e = assertThrows(IllegalStateException.class, () -> abs.call(1));
        assertEquals(why, e.getMessage());
        BoundLibrary started = libc();
        assertSame(started, started.startedBy(library -> {}));
    }

    @Test
    void aMissingPermissionIsToldWithTheFlagThatGivesIt() {
        BoundLibrary library = unloadable(new IllegalCallerException("native access is denied"));
        assertEquals(
                Optional.of(
                        "native access is denied (start Java with --enable-native-access=dev.weft,"
                                + " or ALL-UNNAMED on the class path)"),
                library.unavailable());
    }
}
