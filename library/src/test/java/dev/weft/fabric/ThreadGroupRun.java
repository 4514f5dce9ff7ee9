package dev.weft.fabric;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;

/** Threads that run together; the first failure of one is thrown where they are joined. */
public final class ThreadGroupRun {

    private final List<FutureTask<Void>> tasks = new ArrayList<>();

    /** What one thread does. */
    public interface Action {
        void run() throws Exception;
    }

    public void start(Action action) {
        FutureTask<Void> task =
                new FutureTask<>(
                        () -> {
                            action.run();
                            return null;
                        });
        tasks.add(task);
        Thread.ofPlatform().daemon().name("test-" + tasks.size()).start(task);
    }

    public void join() {
        AssertionError failure = null;
        for (FutureTask<Void> task : tasks) {
            try {
                task.get();
            } catch (ExecutionException e) {
                if (failure == null) {
                    failure = new AssertionError("a thread failed: " + e.getCause(), e.getCause());
                } else {
                    failure.addSuppressed(e.getCause());
                }
            } catch (InterruptedException e) {
                throw new AssertionError("interrupted", e);
            }
        }
        if (failure != null) {
            throw failure;
        }
    }
}
