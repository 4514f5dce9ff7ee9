package dev.weft.fabric.memory;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.EventType;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Threshold;
import jdk.jfr.Timespan;

/**
 * A Flight Recorder event for a wait that blocked; created only if it is recorded. Callers first
 * check whether there is a recorder: loading an event class sets one up, which takes a tenth of a
 * second.
 */
@Name("dev.weft.Stall")
@Label("Stall")
@Category("Weft")
@Description("A thread blocked until a peer's signal came")
@StackTrace(false)
@Threshold("0 ns")
final class StallEvent extends Event {

    private static final EventType TYPE = EventType.getEventType(StallEvent.class);

    @Label("Rank")
    int rank;

    @Label("Awaited")
    String awaited;

    @Label("Blocked")
    @Timespan(Timespan.NANOSECONDS)
    long blockedNs;

    /** Whether somebody records such events. */
    static boolean isRecorded() {
        return TYPE.isEnabled();
    }

    static void ended(long beganNs, int rank, String awaited) {
        StallEvent event = new StallEvent();
        event.rank = rank;
        event.blockedNs = System.nanoTime() - beganNs;
        event.awaited = awaited;
        event.commit();
    }
}
