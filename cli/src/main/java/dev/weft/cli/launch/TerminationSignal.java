package dev.weft.cli.launch;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

/**
 * Which signal ends this process. Java ends at SIGINT, SIGTERM and SIGHUP, but does not report
 * which of them it was. Thread-safe.
 */
public final class TerminationSignal {

    private static final long OWN_NS = 500_000_000L;

    private static volatile String received;

    private TerminationSignal() {}

    /** From now on, a signal's name is kept; the process ends at it as before. */
    public static void watch() {
        // By reflection: it is in a JDK module that a small runtime may lack.
        try {
            Class<?> type = Class.forName("sun.misc.Signal");
            Class<?> handlerType = Class.forName("sun.misc.SignalHandler");
            Object handler =
                    Proxy.newProxyInstance(
                            handlerType.getClassLoader(),
                            new Class<?>[] {handlerType},
                            (proxy, method, arguments) -> {
                                end(arguments[0]);
                                return null;
                            });
            for (String name : List.of("INT", "TERM", "HUP")) {
                type.getMethod("handle", type, handlerType)
                        .invoke(null, type.getConstructor(String.class).newInstance(name), handler);
            }
        } catch (ReflectiveOperationException e) {
            // Then only the name is missing.
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "signals unnamed", e);
        }
    }

    private static void end(Object signal)
            throws NoSuchMethodException, IllegalAccessException, InvocationTargetException {
        received = "SIG" + signal.getClass().getMethod("getName").invoke(signal);
        System.exit(
                RankProcesses.SIGNAL_EXIT
                        + (int) signal.getClass().getMethod("getNumber").invoke(signal));
    }

    /**
     * For a process that a signal has ended: the same signal may have been sent to this process,
     * which then notices it a moment later.
     */
    static void awaitOwn() {
        long until = System.nanoTime() + OWN_NS;
        while (received == null && System.nanoTime() < until) {
            LockSupport.parkNanos(1_000_000);
        }
    }

    /** The name of the signal at which this process ends, if it does and it is known. */
    public static Optional<String> received() {
        return Optional.ofNullable(received);
    }
}
