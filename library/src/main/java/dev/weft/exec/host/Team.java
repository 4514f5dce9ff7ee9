package dev.weft.exec.host;

import dev.weft.gemm.Gemm;
import dev.weft.gemm.Scratch;
import dev.weft.process.TaskThread;
import dev.weft.process.Uninterruptibly;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * Threads that run tasks in rounds, each of them one task, and the working memory of those that
 * multiply. Starting and ending a round allocates nothing. One thread at a time starts and awaits
 * rounds.
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
    private final List<Member> members = new ArrayList<>();
    private final List<Working> memory = new ArrayList<>();
    private final AtomicInteger running = new AtomicInteger();
    private volatile int round;
    private volatile int finished;
    private volatile Thread awaiting;
    private volatile boolean closed;

    /** Made once: waiting allocates nothing. */
    private final BooleanSupplier done = this::isDone;

    /** Of the round under way. */
    private Consumer<Throwable> onError;

    /** What the thread that awaits the round is still to run; null if nothing. */
    private Runnable own;

    Team(String name) {
        this(name, task -> {});
    }

    /**
     * @param first what a thread does once, before its first task
     */
    Team(String name, Consumer<Runnable> first) {
        this.name = name;
        this.first = first;
    }

    /** Adds threads, if there are fewer. No round may be running. */
    void reserve(int threads) {
        while (members.size() < threads) {
            Member member = new Member(name + "-" + members.size());
            member.thread.start();
            members.add(member);
        }
    }

    /** Working memory of a worker, for products of an engine. */
    private record Working(int worker, Object kind, long k, long n, Scratch scratch, Arena arena) {}

    /**
     * Working memory for products of up to [any, k] with [k, n], until the next call for this
     * worker and engine. Allocates nothing if there is enough. No round may be running.
     */
    Scratch scratch(int worker, Gemm gemm, long k, long n) {
        long mostK = k;
        long mostN = n;
        for (int i = 0; i < memory.size(); i++) {
            Working one = memory.get(i);
            if (one.worker == worker && one.kind.equals(gemm.scratchKind())) {
                if (one.k >= k && one.n >= n) {
                    return one.scratch;
                }
                mostK = Math.max(mostK, one.k);
                mostN = Math.max(mostN, one.n);
                memory.remove(i).arena.close();
                break;
            }
        }
        Arena arena = Arena.ofShared();
        try {
            Scratch scratch = gemm.scratch(mostK, mostN, arena);
            memory.add(new Working(worker, gemm.scratchKind(), mostK, mostN, scratch, arena));
            return scratch;
        } catch (RuntimeException | Error e) {
            arena.close();
            throw e;
        }
    }

    /** A thread, and what it is to run. */
    private final class Member implements Runnable {

        private final TaskThread thread;
        private volatile Runnable due;
        private final BooleanSupplier dueOrClosed = () -> due != null || closed;

        Member(String threadName) {
            this.thread = new TaskThread(threadName, this);
        }

        @Override
        public void run() {
            boolean begun = false;
            while (awaitDue()) {
                Runnable task = due;
                due = null;
                thread.begins(task);
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

    /**
     * Starts a round.
     *
     * @param tasks one for each of as many threads
     * @param awaited a task that {@link #await} runs, if the round is too short to hand it to a
     *     thread; null for none
     * @param failed gets what a task throws, on the task's thread
     */
    public void start(Runnable[] tasks, Runnable awaited, Consumer<Throwable> failed) {
        running.set(tasks.length + (awaited == null ? 0 : 1));
        own = awaited;
        onError = failed;
        awaiting = Thread.currentThread();
        round++;
        if (tasks.length == 0 && awaited == null) {
            // A rank may have nothing to do.
            finished = round;
        }
        for (int i = 0; i < tasks.length; i++) {
            Member member = members.get(i);
            member.due = tasks[i];
            LockSupport.unpark(member.thread);
        }
    }

    boolean isDone() {
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

    /** Stops the threads and frees the memory; no round may be running. */
    @Override
    public void close() {
        closed = true;
        Thread[] threads = members.stream().map(member -> member.thread).toArray(Thread[]::new);
        for (Thread thread : threads) {
            LockSupport.unpark(thread);
        }
        Uninterruptibly.join(threads);
        memory.forEach(one -> one.arena.close());
        memory.clear();
    }
}
