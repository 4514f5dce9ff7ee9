package dev.weft.examples.service;

import dev.langchain4j.data.embedding.Embedding;
import dev.weft.examples.encoder.Model;
import dev.weft.examples.encoder.RankEncoder;
import dev.weft.examples.service.RequestQueue.Request;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The sentence encoder as a service. One thread calls {@link #run}, which returns at the end. Any
 * threads, virtual ones too, call all other methods, in the process of rank 0.
 */
final class Service {

    /** After so many worlds in a row that have not encoded anything, it gives up. */
    private static final int MOST_FAILURES = 3;

    private final Settings settings;
    private final Model model;
    private final RequestQueue queue;
    private final Metrics metrics;
    private volatile boolean serving;

    /** Written by all ranks of this process, and read when they have ended. */
    private volatile int failures;

    /**
     * @param model for operators in every world; must stay until {@link #run} has returned
     */
    Service(Settings settings, Model model) {
        this.settings = settings;
        this.model = model;
        queue = new RequestQueue(settings.queue(), settings.batchTokens(), settings.longestWait());
        metrics = new Metrics(queue);
    }

    Metrics metrics() {
        return metrics;
    }

    /** Whether rank 0 takes requests now. */
    boolean isServing() {
        return serving;
    }

    /**
     * An embedding for each text. An interrupt or a timeout ends the wait; what else is in the
     * batch is not affected.
     *
     * @throws RejectedExecutionException if too many requests wait, or the service is ending
     * @throws IllegalArgumentException if a text has no words, or all together are too long
     * @throws ExecutionException if a rank failed
     */
    float[][] embed(List<String> texts, Duration timeout)
            throws InterruptedException, TimeoutException, ExecutionException {
        CompletableFuture<float[][]> answer = submit(model.tokenizer().sentences(texts));
        try {
            return answer.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
        } finally {
            // Nothing, if there is an answer.
            answer.cancel(false);
        }
    }

    /** Like {@link #embed} for tokens, without a wait. */
    CompletableFuture<float[][]> submit(List<int[]> texts) {
        try {
            return queue.submit(texts);
        } catch (RejectedExecutionException e) {
            metrics.rejected();
            throw e;
        }
    }

    /** Answers what waits and lets {@link #run} return. Requests are rejected from now on. */
    void stop() {
        queue.close();
    }

    /**
     * Runs the ranks of this process until {@link #stop}. After a failure it goes on in a new
     * world.
     *
     * @param first where the ranks begin; it is closed here
     */
    void run(World first) {
        try {
            World world = first;
            while (!served(world)) {
                // The ranks that live wait here for those that were started again.
                world = world.renew();
            }
        } catch (Throwable e) {
            queue.fail(e);
            throw e;
        }
    }

    /** Whether it was the end; false if a rank failed, and the world with it. */
    private boolean served(World world) {
        try {
            world.run(this::serve);
        } catch (RuntimeException e) {
            metrics.failed();
            if (e.getCause() instanceof InterruptedException || ++failures == MOST_FAILURES) {
                world.close();
                throw e;
            }
            System.err.println("service: a rank failed, making a new world: " + e.getMessage());
            return false;
        }
        world.close();
        return true;
    }

    /** One rank in one world. The weights stay; operators are prepared anew. */
    private void serve(Fabric fabric) throws InterruptedException {
        int tokens = settings.batchTokens();
        try (Broadcast batches = new Broadcast(fabric, tokens);
                RankEncoder encoder = new RankEncoder(fabric, model.weights(), tokens)) {
            if (fabric.rank() == 0) {
                serving = true;
                lead(fabric.deadline().dividedBy(3), batches, encoder);
            } else {
                follow(batches, encoder);
            }
        } finally {
            if (fabric.rank() == 0) {
                serving = false;
            }
        }
    }

    /**
     * Rank 0.
     *
     * @param idle after which the others get an empty batch: they wait no longer than the deadline
     */
    private void lead(Duration idle, Broadcast batches, RankEncoder encoder)
            throws InterruptedException {
        while (!queue.isClosedAndEmpty()) {
            List<Request> batch = queue.take(idle);
            try {
                answer(batch, batches, encoder);
            } catch (Throwable e) {
                batch.forEach(request -> request.answer().completeExceptionally(e));
                throw e;
            }
        }
        batches.sendEnd();
    }

    private void answer(List<Request> batch, Broadcast batches, RankEncoder encoder) {
        long start = System.nanoTime();
        long callsBefore = batches.calls() + encoder.calls();
        List<int[]> texts = batch.stream().flatMap(request -> request.texts().stream()).toList();
        batches.send(texts);
        if (batch.isEmpty()) {
            return;
        }
        float[][] means = encode(texts, encoder);
        // Before the answers, so that who has one finds it counted.
        metrics.batch(batch, start, batches.calls() + encoder.calls() - callsBefore);
        int first = 0;
        for (Request request : batch) {
            int end = first + request.texts().size();
            request.answer().complete(normalized(Arrays.copyOfRange(means, first, end)));
            first = end;
        }
    }

    /** On every rank, so that all of them count alike. */
    private float[][] encode(List<int[]> texts, RankEncoder encoder) {
        float[][] means = encoder.encode(texts);
        failures = texts.isEmpty() ? failures : 0;
        return means;
    }

    private static float[][] normalized(float[][] means) {
        for (float[] mean : means) {
            Embedding.from(mean).normalize();
        }
        return means;
    }

    private void follow(Broadcast batches, RankEncoder encoder) {
        Optional<List<int[]>> texts = batches.receive();
        while (texts.isPresent()) {
            encode(texts.get(), encoder);
            texts = batches.receive();
        }
    }
}
