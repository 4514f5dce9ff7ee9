package dev.weft.op;

import dev.weft.exec.host.Team;
import dev.weft.exec.host.Teams;
import dev.weft.fabric.transport.Transport;
import java.lang.reflect.UndeclaredThrowableException;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.IntConsumer;

/** A program's own work on the threads of a rank's operators. One thread at a time uses it. */
final class RankThreads implements AutoCloseable {

    private static final Runnable[] NONE = {};

    private final Teams teams;
    private final Runnable[] others;
    private final AtomicInteger next = new AtomicInteger();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final Runnable work = this::work;
    private final Consumer<Throwable> onError = thrown -> failure.compareAndSet(null, thrown);

    /** Of the call under way: written before the team starts. */
    private IntConsumer task;

    private int count;

    /**
     * @param count the threads, the caller's among them
     */
    RankThreads(Transport fabric, int count) {
        teams = Teams.join(fabric);
        others = new Runnable[count - 1];
        Arrays.fill(others, work);
    }

    /** See {@link Operator#forEach}. */
    void forEach(int count, IntConsumer task) {
        this.task = Objects.requireNonNull(task, "task");
        this.count = count;
        next.set(0);
        Runnable[] helping = count > 1 ? others : NONE;
        Team team = teams.take(helping.length);
        try {
            team.start(helping, work, onError);
            team.await();
        } finally {
            teams.giveBack(team);
            this.task = null;
        }
        Throwable thrown = failure.getAndSet(null);
        if (thrown instanceof RuntimeException e) {
            throw e;
        } else if (thrown instanceof Error e) {
            throw e;
        } else if (thrown != null) {
            // A task cannot declare it, but may throw it.
            throw new UndeclaredThrowableException(thrown);
        }
    }

    private void work() {
        for (int i = next.getAndIncrement(); i < count && failure.get() == null; ) {
            task.accept(i);
            i = next.getAndIncrement();
        }
    }

    @Override
    public void close() {
        teams.leave();
    }
}
