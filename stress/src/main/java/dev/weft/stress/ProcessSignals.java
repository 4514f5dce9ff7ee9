package dev.weft.stress;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/** Signals that a process sends to itself or to others, by the system's own call. */
final class ProcessSignals {

    static final int INT = 2;
    static final int KILL = 9;
    static final int TERM = 15;
    static final int CONT = 18;
    static final int STOP = 19;

    private static final MethodHandle KILL_CALL = killCall();

    private ProcessSignals() {}

    @SuppressWarnings("restricted")
    private static MethodHandle killCall() {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(
                linker.defaultLookup().find("kill").orElseThrow(),
                FunctionDescriptor.of(
                        ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));
    }

    /** By the name without SIG, as on Linux. */
    static int number(String name) {
        return switch (name) {
            case "INT" -> INT;
            case "KILL" -> KILL;
            case "TERM" -> TERM;
            case "STOP" -> STOP;
            default -> throw new IllegalArgumentException("no signal " + name);
        };
    }

    /** Whether there was such a process to send it to. */
    static boolean send(long pid, int signal) {
        try {
            return (int) KILL_CALL.invokeExact((int) pid, signal) == 0;
        } catch (Throwable e) {
            throw new IllegalStateException("kill(" + pid + ", " + signal + ")", e);
        }
    }

    static void sendToSelf(int signal) {
        send(ProcessHandle.current().pid(), signal);
    }
}
