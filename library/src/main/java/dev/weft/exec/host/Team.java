package dev.weft.exec.host;

import dev.weft.process.Uninterruptibly;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * Threads that run tasks in rounds, each of them one task. Starting and ending a round allocates
 * nothing. One thread at a time starts and awaits rounds.
 *
 * <p>Memory order: what the starter wrote before {@link #start} is visible to the tasks (volatile
 * {@code due}); what the tasks wrote is visible after {@link #await} (volatile {@code finished}).
 * Waiting for the team needs no deadline: each task's waits have one.
 */
public final class Team implements AutoCloseable {

    /**
     * A thread that waits polls before it parks, since a round often follows the last one closely:
     * first without, then with an offer of its core to others. Measured with an encoder of six
     * layers on two cores, 16 rows: 8% less time than with the first part alone, as with 200 us.
     */
    private static final int SPINS = 100;

    private static final long YIELDS_NS = 50_000;

    private final String name;
    private final Consumer<Runnable> first;
    private final Consumer<Throwable> onError;
    private final List<Member> members = new ArrayList<>();
    private final Runnable[] tasks;
    private final Runnable awaited;
    private final AtomicInteger running = new AtomicInteger();
    private volatile int round;
    private volatile int finished;
    private volatile Thread awaiting;
    private volatile boolean closed;

    /** Made once: waiting allocates nothing. */
    private final BooleanSupplier done = this::isDone;

    /** What the thread that awaits the round is still to run; null if nothing. */
    private Runnable own;

    /** One thread per task. */
    public Team(
            String name, Runnable[] tasks, Consumer<Runnable> first, Consumer<Throwable> onError) {
        this(name, tasks, null, first, onError);
    }

    /**
     * One thread per task, except for {@code awaited}.
     *
     * @param tasks those of a round that is started without others
     * @param awaited a task that {@link #await} runs, if a round is too short to hand it to a
     *     thread; null for none
     * @param first what a thread does once, before its first task
     * @param onError gets what a task throws, on the task's thread
     */
    public Team(
            String name,
            Runnable[] tasks,
            Runnable awaited,
            Consumer<Runnable> first,
            Consumer<Throwable> onError) {
        this.name = name;
        this.tasks = tasks;
        this.awaited = awaited;
        this.first = first;
        this.onError = onError;
        addThreadsFor(tasks);
    }

    /** Adds threads, if rounds of these tasks need more. No round may be running. */
    void addThreadsFor(Runnable[] more) {
        try {
            for (int i = members.size(); i < more.length; i++) {
                Member member = new Member(name + "-" + more[i]);
                member.thread.start();
                members.add(member);
            }
        } catch (Throwable e) {
            // The system is out of threads: those that were started must not wait for ever.
            close();
            throw e;
        }
    }

    /** A thread, and what it is to run. */
    private final class Member implements Runnable {

        private final Thread thread;
        private volatile Runnable due;
        private final BooleanSupplier dueOrClosed = () -> due != null || closed;

        Member(String threadName) {
            this.thread = Thread.ofPlatform().daemon().name(threadName).unstarted(this);
        }

        @Override
        public void run() {
            boolean begun = false;
            while (awaitDue()) {
                Runnable task = due;
                due = null;
                if (!begun) {
                    begun = true;
                    begin(task);
                }
                runTask(task);
            }
        }

        private void begin(Runnable task) {
            try {
                first.accept(task);
            } catch (Throwable e) {
                onError.accept(e);
            }
        }

        private boolean awaitDue() {
            poll(dueOrClosed);
            while (due == null) {
                if (closed) {
                    return false;
                }
                LockSupport.park(Team.this);
            }
            return true;
        }
    }

    /** Waits a little while. */
    private static void poll(BooleanSupplier ended) {
        for (int spin = 0; spin < SPINS; spin++) {
            if (ended.getAsBoolean()) {
                return;
            }
            Thread.onSpinWait();
        }
        long start = System.nanoTime();
        while (!ended.getAsBoolean() && System.nanoTime() - start < YIELDS_NS) {
            Thread.yield();
        }
    }

    private void runTask(Runnable task) {
        try {
            task.run();
        } catch (Throwable e) {
            onError.accept(e);
        } finally {
            // Always: the thread that awaits the round has no deadline.
            ended();
        }
    }

    private void ended() {
        int current = round;
        if (running.decrementAndGet() == 0) {
            finished = current;
            LockSupport.unpark(awaiting);
        }
    }

    public void start() {
        start(tasks, awaited);
    }

    /** Starts a round of other tasks, for which there are threads. */
    void start(Runnable[] others, Runnable ofAwaiter) {
        running.set(others.length + (ofAwaiter == null ? 0 : 1));
        own = ofAwaiter;
        awaiting = Thread.currentThread();
        round++;
        if (others.length == 0 && ofAwaiter == null) {
            // A rank may have nothing to do.
            finished = round;
        }
        for (int i = 0; i < others.length; i++) {
            Member member = members.get(i);
            member.due = others[i];
            LockSupport.unpark(member.thread);
        }
    }

    public boolean isDone() {
        return finished == round;
    }

    /** Waits for the end of the round. May be called from another thread than {@link #start}. */
    public void await() {
        awaiting = Thread.currentThread();
        if (own != null) {
            Runnable task = own;
            own = null;
            runTask(task);
        }
        boolean interrupted = false;
        poll(done);
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
        Thread[] threads = members.stream().map(member -> member.thread).toArray(Thread[]::new);
        for (Thread thread : threads) {
            LockSupport.unpark(thread);
        }
        Uninterruptibly.join(threads);
    }
}
