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

    /** What reports call the thread that runs it. */
    @Override
    public final String toString() {
        return log.name();
    }
}
