package dev.weft.op;

import jdk.jfr.Category;
import jdk.jfr.Event;
import jdk.jfr.EventType;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/**
 * A Flight Recorder event for one call of an operator on one rank; created only if it is recorded.
 * Callers first check whether there is a recorder: loading an event class sets one up, which takes
 * a tenth of a second.
 */
@Name("dev.weft.Call")
@Label("All-gather matmul")
@Category("Weft")
@StackTrace(false)
final class CallEvent extends Event {

    private static final EventType TYPE = EventType.getEventType(CallEvent.class);

    @Label("Rank")
    int rank;

    @Label("Call")
    int call;

    @Label("Algorithm")
    String algorithm;

    @Label("View")
    String view;

    @Label("Elapsed")
    @Timespan(Timespan.NANOSECONDS)
    long elapsedNs;

    @Label("Completed")
    boolean completed;

    static void ended(Operator<?> operator, int rank, int call, boolean completed) {
        if (!TYPE.isEnabled()) {
            return;
        }
        CallEvent event = new CallEvent();
        event.rank = rank;
        event.call = call;
        event.algorithm = operator.plan().name();
        event.view = operator.view(call).name();
        event.elapsedNs = operator.result().elapsedNs();
        event.completed = completed;
        event.commit();
    }
}
