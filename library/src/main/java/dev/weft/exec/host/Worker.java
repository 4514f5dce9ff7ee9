package dev.weft.exec.host;

/** What one thread of a rank does in every call, with a log of its spans. */
public abstract class Worker implements Runnable {

    protected final SpanLog log;

    protected Worker(SpanLog log) {
        this.log = log;
    }

    public final SpanLog log() {
        return log;
    }

    /** The name of the thread. */
    @Override
    public final String toString() {
        return log.name();
    }
}
