package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;

/**
 * Environment variables that a native library reads when it is loaded. What the user has set stays.
 * For the thread that loads the library.
 */
final class NativeEnvironment {

    private NativeEnvironment() {}

    /** Through the C library: Java's own environment is a copy that native libraries do not see. */
    @SuppressWarnings("restricted")
    static void setUnlessSet(String name, String value) throws Throwable {
        Linker linker = Linker.nativeLinker();
        MethodHandle setenv =
                linker.downcallHandle(
                        linker.defaultLookup().findOrThrow("setenv"),
                        FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));
        try (Arena arena = Arena.ofConfined()) {
            int keepExisting = 0;
            int code =
                    (int)
                            setenv.invokeExact(
                                    arena.allocateFrom(name),
                                    arena.allocateFrom(value),
                                    keepExisting);
            if (code != 0) {
                throw new IllegalStateException(
                        "setenv(" + name + ", " + value + ") returned " + code);
            }
        }
    }
}
