package dev.weft.examples.service;

import jdk.jfr.Category;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/** A Flight Recorder event for one batch, beside Weft's own for each call of an operator. */
@Name("dev.weft.examples.service.Batch")
@Label("Batch")
@Category("Weft")
@StackTrace(false)
final class BatchEvent extends Event {

    @Label("Requests")
    int requests;

    @Label("Tokens")
    int tokens;

    @Label("Queued")
    @Timespan(Timespan.NANOSECONDS)
    long queuedNs;

    @Label("Encoded")
    @Timespan(Timespan.NANOSECONDS)
    long encodedNs;

    /**
     * @param queuedNs how long its first request waited
     */
    static void ended(int requests, int tokens, long queuedNs, long encodedNs) {
        BatchEvent event = new BatchEvent();
        event.requests = requests;
        event.tokens = tokens;
        event.queuedNs = queuedNs;
        event.encodedNs = encodedNs;
        event.commit();
    }
}
