package dev.weft.exec.host;

import dev.weft.process.Uninterruptibly;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * A fixed team of threads that runs the same tasks once per round. Starting and ending a round
 * allocates nothing. One thread at a time starts and awaits rounds.
 *
 * <p>Memory order: what the starter wrote before {@link #start} is visible to the tasks (volatile
 * {@code round}); what the tasks wrote is visible after {@link #await} (volatile {@code finished}).
 * Waiting for the team needs no deadline: each task's waits have one.
 */
public final class Team implements AutoCloseable {

    /** Polls before parking; a round often follows the last one closely. */
    private static final int SPINS = 100;

    private final Thread[] threads;

    /** The task that the thread that awaits a round runs itself, or null. */
    private final Runnable awaited;

    private final AtomicInteger running = new AtomicInteger();
    private final Consumer<Throwable> onError;
    private volatile int round;
    private volatile int finished;
    private volatile Thread awaiting;
    private volatile boolean closed;

    /** Whether the round's {@link #awaited} is still to be run. */
    private boolean isDue;

    /** One thread per task. */
    public Team(
            String name, Runnable[] tasks, Consumer<Runnable> first, Consumer<Throwable> onError) {
        this(name, tasks, null, first, onError);
    }

    /**
     * One thread per task, except for {@code awaited}.
     *
     * @param awaited a task that {@link #await} runs, if a round is too short to hand it to a
     *     thread; null for none
     * @param first what a task's thread does once, before its first round
     * @param onError gets what a task throws, on the task's thread
     */
    public Team(
            String name,
            Runnable[] tasks,
            Runnable awaited,
            Consumer<Runnable> first,
            Consumer<Throwable> onError) {
        this.onError = onError;
        this.awaited = awaited;
        threads = new Thread[tasks.length];
        for (int i = 0; i < tasks.length; i++) {
            Runnable task = tasks[i];
            threads[i] =
                    Thread.ofPlatform()
                            .daemon()
                            .name(name + "-" + task)
                            .unstarted(() -> rounds(task, first));
        }
        try {
            for (Thread thread : threads) {
                thread.start();
            }
        } catch (Throwable e) {
            // The system is out of threads: those that were started must not wait for ever.
            close();
            throw e;
        }
    }

    private void rounds(Runnable task, Consumer<Runnable> first) {
        int seen = 0;
        try {
            first.accept(task);
        } catch (Throwable e) {
            onError.accept(e);
        }
        while (awaitRoundAfter(seen)) {
            seen++;
            run(task, seen);
        }
    }

    private void run(Runnable task, int of) {
        try {
            task.run();
        } catch (Throwable e) {
            onError.accept(e);
        } finally {
            // Always: the thread that awaits the round has no deadline.
            ended(of);
        }
    }

    private void ended(int seen) {
        if (running.decrementAndGet() == 0) {
            finished = seen;
            LockSupport.unpark(awaiting);
        }
    }

    private boolean awaitRoundAfter(int seen) {
        for (int spin = 0; round == seen; spin++) {
            if (closed) {
                return false;
            }
            if (spin < SPINS) {
                Thread.onSpinWait();
            } else {
                LockSupport.park(this);
            }
        }
        return true;
    }

    public void start() {
        running.set(threads.length + (awaited == null ? 0 : 1));
        isDue = awaited != null;
        awaiting = Thread.currentThread();
        round++;
        if (threads.length == 0 && awaited == null) {
            // A rank may have nothing to do.
            finished = round;
        }
        for (Thread thread : threads) {
            LockSupport.unpark(thread);
        }
    }

    public boolean isDone() {
        return finished == round;
    }

    /** Waits for the end of the round. May be called from another thread than {@link #start}. */
    public void await() {
        awaiting = Thread.currentThread();
        if (isDue) {
            isDue = false;
            run(awaited, round);
        }
        boolean interrupted = false;
        while (!isDone()) {
            LockSupport.park(this);
            // An interrupt must not end the call half-way: peers depend on it. Pass it on later.
            interrupted |= Thread.interrupted();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Stops the threads; no round may be running. */
    @Override
    public void close() {
        closed = true;
        for (Thread thread : threads) {
            LockSupport.unpark(thread);
        }
        Uninterruptibly.join(threads);
    }
}
