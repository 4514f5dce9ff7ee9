package dev.weft.cuda.exec;

import dev.weft.fabric.Fabric;
import java.util.concurrent.atomic.AtomicReference;

/** The first failure of any thread that works for a rank's calls: the cause of the others. */
public final class CallFailure {

    private final Fabric fabric;
    private final AtomicReference<Throwable> first = new AtomicReference<>();

    public CallFailure(Fabric fabric) {
        this.fabric = fabric;
    }

    /** Any thread. Ends the waits of all others. */
    public void failed(Throwable e) {
        if (first.compareAndSet(null, e)) {
            fabric.fail(e);
        }
    }

    public boolean hasFailed() {
        return first.get() != null;
    }

    /** Throws the failure, if there is one. */
    public void check() {
        if (hasFailed()) {
            throw cause();
        }
    }

    public RuntimeException cause() {
        Throwable cause = first.get();
        return cause instanceof RuntimeException e ? e : new IllegalStateException(cause);
    }
}
