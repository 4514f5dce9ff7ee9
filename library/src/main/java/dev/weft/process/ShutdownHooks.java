package dev.weft.process;

/**
 * Threads that clean up when this process is told to end. It may be told so at any moment, also
 * while a hook is added or removed: Java then throws, and users would see that instead of what
 * ended the process. Thread-safe.
 */
public final class ShutdownHooks {

    private ShutdownHooks() {}

    /**
     * Adds a hook.
     *
     * @return false if this process is already ending: the hook does not run, so nothing that needs
     *     it may be created
     */
    public static boolean add(Thread hook) {
        try {
            Runtime.getRuntime().addShutdownHook(hook);
            return true;
        } catch (IllegalStateException e) {
            debug(e);
            return false;
        }
    }

    /** Removes a hook; if this process is already ending, the hook runs. */
    public static void remove(Thread hook) {
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException e) {
            debug(e);
        }
    }

    private static void debug(IllegalStateException e) {
        System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "shutting down", e);
    }
}
