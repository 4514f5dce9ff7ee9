package dev.weft.cuda;

import dev.weft.threads.Uninterruptibly;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.IntConsumer;

/**
 * A thread that does the same task in one call after the other; starting and awaiting it allocates
 * nothing. One thread starts calls and awaits them.
 *
 * <p>Order: what the starter wrote before {@link #start} is visible to the task (volatile {@code
 * asked}); what the task wrote is visible after {@link #await} (volatile {@code done}). Waiting for
 * it needs no deadline of its own: the task's waits have theirs.
 */
final class CallThread implements AutoCloseable {

    private final Thread thread;
    private volatile int asked;
    private volatile int done;
    private volatile Thread awaiting;
    private volatile boolean closed;

    /**
     * @param task is given the call's number, which is never 0
     * @param onFailure gets what the task throws, on this thread
     */
    CallThread(String name, IntConsumer task, Consumer<Throwable> onFailure) {
        this.thread = Thread.ofPlatform().daemon().name(name).start(() -> run(task, onFailure));
    }

    private void run(IntConsumer task, Consumer<Throwable> onFailure) {
        int seen = 0;
        while (true) {
            while (asked == seen) {
                if (closed) {
                    return;
                }
                LockSupport.park(this);
            }
            seen = asked;
            try {
                task.accept(seen);
            } catch (Throwable e) {
                onFailure.accept(e);
            } finally {
                // Whatever happens: who awaits it has no deadline.
                done = seen;
                LockSupport.unpark(awaiting);
            }
        }
    }

    /** The call before must have been awaited. */
    void start(int call) {
        asked = call;
        LockSupport.unpark(thread);
    }

    /** Returns when the task of the latest call has ended, as it has where there is none. */
    void await() {
        awaiting = Thread.currentThread();
        boolean interrupted = false;
        while (done != asked) {
            LockSupport.park(this);
            // An interrupt must not end the call half-way: peers depend on it. Pass it on later.
            interrupted |= Thread.interrupted();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Ends the thread, after a task that is under way. */
    @Override
    public void close() {
        await();
        closed = true;
        LockSupport.unpark(thread);
        Uninterruptibly.join(thread);
    }
}
