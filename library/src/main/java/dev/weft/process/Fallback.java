package dev.weft.process;

import java.lang.System.Logger.Level;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import jdk.jfr.Category;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/** A Flight Recorder event: something slower is used instead of what was wanted. Reported once. */
@Name("dev.weft.Fallback")
@Label("Fallback")
@Category("Weft")
@StackTrace(false)
public final class Fallback extends Event {

    private static final Set<String> REPORTED = ConcurrentHashMap.newKeySet();

    @Label("Used")
    String used;

    @Label("Reason")
    String reason;

    private Fallback(String used, String reason) {
        this.used = used;
        this.reason = reason;
    }

    /**
     * Logs a warning and records an event, unless {@code used} was reported before.
     *
     * @param used what is used instead
     * @param reason why, and how to get the better one
     */
    public static void report(String used, String reason) {
        if (REPORTED.add(used)) {
            System.getLogger("dev.weft").log(Level.WARNING, "using {0}: {1}", used, reason);
            new Fallback(used, reason).commit();
        }
    }
}
