package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.util.Optional;

/**
 * Linux's permission to use the tile registers of x86_64 (AMX), which a process asks for once, for
 * all of its threads. Any thread may call.
 */
public final class TileRegisters {

    private static final long ARCH_PRCTL = 158;
    private static final long ARCH_REQ_XCOMP_PERM = 0x1023;
    private static final long TILE_DATA = 18;

    private TileRegisters() {}

    /** Why code of this process may not use them, or empty where it may from now on. */
    public static Optional<String> unavailable() {
        return Asked.ANSWER;
    }

    /** Asked when first needed. */
    private static final class Asked {
        static final Optional<String> ANSWER = ask();

        @SuppressWarnings("restricted")
        private static Optional<String> ask() {
            String os = System.getProperty("os.name");
            String arch = System.getProperty("os.arch");
            if (!os.equals("Linux") || !arch.equals("amd64")) {
                return Optional.of("no tile registers known for %s on %s".formatted(os, arch));
            }
            try (Arena arena = Arena.ofConfined()) {
                Linker linker = Linker.nativeLinker();
                MethodHandle syscall =
                        linker.downcallHandle(
                                linker.defaultLookup().findOrThrow("syscall"),
                                FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
                                Linker.Option.firstVariadicArg(1),
                                Linker.Option.captureCallState("errno"));
                StructLayout layout = Linker.Option.captureStateLayout();
                VarHandle errno = layout.varHandle(MemoryLayout.PathElement.groupElement("errno"));
                MemorySegment state = arena.allocate(layout);
                long result =
                        (long)
                                syscall.invokeExact(
                                        state, ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, TILE_DATA);
                return result == 0
                        ? Optional.empty()
                        : Optional.of(
                                "arch_prctl(ARCH_REQ_XCOMP_PERM, 18) failed with errno "
                                        + (int) errno.get(state, 0L));
            } catch (Throwable e) {
                // Binding fails in many ways (no permission, no symbol); all mean the same here.
                return Optional.of(e.getMessage() == null ? e.toString() : e.getMessage());
            }
        }
    }
}
