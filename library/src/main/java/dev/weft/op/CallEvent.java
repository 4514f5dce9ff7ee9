package dev.weft.op;

import dev.weft.op.exec.CallState;
import jdk.jfr.Category;
import jdk.jfr.Event;
import jdk.jfr.EventType;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/** One call of an operator on one rank. Not built while nobody records. */
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

    static void ended(
            int rank, CallState state, String algorithm, long elapsedNs, boolean completed) {
        if (!TYPE.isEnabled()) {
            return;
        }
        CallEvent event = new CallEvent();
        event.rank = rank;
        event.call = state.call;
        event.algorithm = algorithm;
        event.view = state.view.name();
        event.elapsedNs = elapsedNs;
        event.completed = completed;
        event.commit();
    }
}
