package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;

/**
 * A process that has Linux (6.3 and later) refuse it memory that becomes executable, as hardened
 * systems do, and tells what became of making code.
 */
@SuppressWarnings("restricted")
final class NoNewCode {

    private static final int PR_SET_MDWE = 65;
    private static final long REFUSE_EXEC_GAIN = 1;

    private NoNewCode() {}

    public static void main(String[] args) throws Throwable {
        Linker linker = Linker.nativeLinker();
        MethodHandle prctl =
                linker.downcallHandle(
                        linker.defaultLookup().findOrThrow("prctl"),
                        FunctionDescriptor.of(
                                JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
                        Linker.Option.firstVariadicArg(1));
        // Binds the functions that it needs, as long as the JVM may make code for that.
        ExecutableMemory.of(new byte[] {0});
        int refused = (int) prctl.invokeExact(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0L, 0L, 0L);
        if (refused != 0) {
            System.out.println("told this kernel knows no such refusal");
            return;
        }
        try {
            ExecutableMemory.of(new byte[] {0});
            System.out.println("told it was made");
        } catch (IllegalStateException e) {
            System.out.println("told " + e.getMessage());
        }
    }
}
