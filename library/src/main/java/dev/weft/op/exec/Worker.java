package dev.weft.op.exec;

/** What one thread of a rank does in every call, and the spans that it leaves. */
public abstract class Worker implements Runnable {

    protected final SpanLog log;

    protected Worker(SpanLog log) {
        this.log = log;
    }

    public final SpanLog log() {
        return log;
    }

    /** By which the thread is called. */
    @Override
    public final String toString() {
        return log.name();
    }
}
