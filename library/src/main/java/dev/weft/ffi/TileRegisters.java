package dev.weft.ffi;

import java.util.Optional;

/**
 * Linux's permission to use the tile registers of x86_64 (AMX), which a process asks for once, for
 * all of its threads. Any thread may call.
 */
public final class TileRegisters {

    private static final long ARCH_REQ_XCOMP_PERM = 0x1023;
    private static final long TILE_DATA = 18;

    private TileRegisters() {}

    /** Why code of this process may not use them, or empty if it may from now on. */
    public static Optional<String> unavailable() {
        return Asked.ANSWER;
    }

    /** Requested when first needed. */
    private static final class Asked {
        static final Optional<String> ANSWER = SystemCall.unavailable(Asked::ask);

        private static Optional<String> ask() {
            if (!SystemCall.ARCH_PRCTL.isKnown()) {
                return Optional.of(
                        "no tile registers known for %s on %s"
                                .formatted(
                                        System.getProperty("os.name"),
                                        System.getProperty("os.arch")));
            }
            SystemCall.Result result =
                    SystemCall.ARCH_PRCTL.call(ARCH_REQ_XCOMP_PERM, TILE_DATA, 0);
            return result.value() == 0
                    ? Optional.empty()
                    : Optional.of(
                            "arch_prctl(ARCH_REQ_XCOMP_PERM, 18) failed with errno "
                                    + result.errno());
        }
    }
}
