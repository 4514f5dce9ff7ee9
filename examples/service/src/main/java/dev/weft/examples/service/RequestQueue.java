package dev.weft.examples.service;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * Requests in the order in which they came. Any thread may {@link #submit}, and never waits; the
 * thread of rank 0 takes them in batches.
 */
final class RequestQueue {

    private final int most;
    private final int mostTokens;
    private final long waitNs;
    private final BlockingQueue<Request> waiting;

    /** For which the last batch had no room, or null; only rank 0's thread writes it. */
    private volatile Request next;

    private volatile boolean closed;

    /**
     * @param most requests that wait
     * @param mostTokens of a batch
     * @param wait how long a request waits until its batch is taken, full or not
     */
    RequestQueue(int most, int mostTokens, Duration wait) {
        this.most = most;
        this.mostTokens = mostTokens;
        this.waitNs = wait.toNanos();
        waiting = new LinkedBlockingQueue<>(most);
    }

    /**
     * Texts that are encoded in one batch.
     *
     * @param answer an embedding for each text; a caller that gives up cancels it
     */
    record Request(
            List<int[]> texts, int tokens, long queuedNs, CompletableFuture<float[][]> answer) {

        Request(List<int[]> texts) {
            this(
                    texts,
                    texts.stream().mapToInt(text -> text.length).sum(),
                    System.nanoTime(),
                    new CompletableFuture<>());
        }
    }

    /**
     * @throws RejectedExecutionException if the queue is full or closed
     * @throws IllegalArgumentException if no batch has room for the request
     */
    CompletableFuture<float[][]> submit(List<int[]> texts) {
        Request request = new Request(texts);
        if (request.tokens() > mostTokens) {
            throw new IllegalArgumentException(
                    "a request of %d tokens: expected at most %d"
                            .formatted(request.tokens(), mostTokens));
        }
        if (closed) {
            throw ending();
        }
        if (!waiting.offer(request)) {
            waiting.removeIf(one -> one.answer().isDone());
            if (!waiting.offer(request)) {
                throw new RejectedExecutionException(
                        "%d requests are waiting: expected fewer".formatted(most));
            }
        }
        // Rank 0 may have looked for the last time before this one came.
        if (closed && waiting.remove(request)) {
            throw ending();
        }
        return request.answer();
    }

    private static RejectedExecutionException ending() {
        return new RejectedExecutionException("the service is ending");
    }

    /**
     * The next batch, once it is full, its first request has waited long enough, or the queue is
     * closed. Leaves out what nobody waits for any more.
     *
     * @return empty if there was no request for {@code idle}
     */
    List<Request> take(Duration idle) throws InterruptedException {
        List<Request> batch = new ArrayList<>();
        try {
            fill(batch, System.nanoTime() + idle.toNanos());
        } catch (InterruptedException e) {
            // They are in the queue no more.
            batch.forEach(request -> request.answer().completeExceptionally(e));
            throw e;
        }
        return batch;
    }

    private void fill(List<Request> batch, long idleEndNs) throws InterruptedException {
        int count = 0;
        long endNs = idleEndNs;
        Request one = next == null ? poll(endNs) : next;
        while (one != null && count + one.tokens() <= mostTokens) {
            if (!one.answer().isDone()) {
                batch.add(one);
                count += one.tokens();
                long oldestEndNs = batch.getFirst().queuedNs() + waitNs;
                endNs = oldestEndNs - endNs < 0 ? oldestEndNs : endNs;
            }
            one = count < mostTokens ? poll(endNs) : null;
        }
        next = one;
    }

    private Request poll(long endNs) throws InterruptedException {
        return closed
                ? waiting.poll()
                : waiting.poll(endNs - System.nanoTime(), TimeUnit.NANOSECONDS);
    }

    /** How many requests wait. */
    int size() {
        return waiting.size() + (next == null ? 0 : 1);
    }

    /** From now on, requests are rejected; those that wait can still be taken. */
    void close() {
        closed = true;
        // Wakes rank 0, which skips it. If there is no room, it is awake.
        Request none = new Request(List.of());
        none.answer().cancel(false);
        waiting.offer(none);
    }

    boolean isClosedAndEmpty() {
        return closed && size() == 0;
    }

    /** Closes it and gives up what waits; rank 0 must not run any more. */
    void fail(Throwable cause) {
        close();
        List<Request> left = new ArrayList<>();
        if (next != null) {
            left.add(next);
        }
        waiting.drainTo(left);
        left.forEach(request -> request.answer().completeExceptionally(cause));
        next = null;
    }
}
