package dev.weft.examples.service;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.List;

/**
 * SIGTERM and SIGINT as a wish to end. A shutdown hook would not do: hooks run at the same time as
 * those of MPI and Flight Recorder, and the exit code would be 143.
 */
final class EndSignals {

    private EndSignals() {}

    /**
     * Runs {@code end} at each signal. A second SIGINT ends the process at once, but not a second
     * SIGTERM: if one goes to all processes of a group, a launcher among them passes on another.
     */
    static void handle(Runnable end) {
        // By reflection: the compiler warns of these classes, although jdk.unsupported exports
        // them, and this build has no warnings.
        try {
            Class<?> type = Class.forName("sun.misc.Signal");
            Class<?> handlerType = Class.forName("sun.misc.SignalHandler");
            Object usual = handlerType.getField("SIG_DFL").get(null);
            Method handle = type.getMethod("handle", type, handlerType);
            for (String name : List.of("TERM", "INT")) {
                Object signal = type.getConstructor(String.class).newInstance(name);
                InvocationHandler handler =
                        (proxy, method, arguments) -> {
                            if (name.equals("INT")) {
                                handle.invoke(null, signal, usual);
                            }
                            end.run();
                            return null;
                        };
                Class<?>[] types = {handlerType};
                handle.invoke(
                        null,
                        signal,
                        Proxy.newProxyInstance(handlerType.getClassLoader(), types, handler));
            }
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("signals need the module jdk.unsupported", e);
        }
    }
}
