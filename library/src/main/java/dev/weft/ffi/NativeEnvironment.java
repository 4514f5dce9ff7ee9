package dev.weft.ffi;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;

/**
 * Environment variables that a native library reads when it is loaded. Values that the user has set
 * are kept. For the thread that loads the library.
 */
final class NativeEnvironment {

    private NativeEnvironment() {}

    /** Through the C library: Java's own environment is a copy that native libraries do not see. */
    static void setUnlessSet(String name, String value) {
        NativeFunction setenv =
                BoundLibrary.load(
                                "libc",
                                "every Linux has it",
                                code -> "",
                                () -> Linker.nativeLinker().defaultLookup())
                        .function("setenv", "PPI");
        try (Arena arena = Arena.ofConfined()) {
            long nameAt = arena.allocateFrom(name).address();
            int keepExisting = 0;
            setenv.check(
                    setenv.call(nameAt, arena.allocateFrom(value).address(), keepExisting),
                    name + ", " + value);
        }
    }
}
