package dev.weft.examples.service;

import dev.weft.examples.service.RequestQueue.Request;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Timer;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** What rank 0 has done, for {@code GET /metrics}. Thread-safe. */
final class Metrics {

    private final PrometheusMeterRegistry registry =
            new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final Timer latency =
            Timer.builder("service.request")
                    .description("from the queue to the answer")
                    .publishPercentiles(0.5, 0.99, 0.999)
                    .register(registry);
    private final Timer encoding =
            Timer.builder("service.batch").description("encoding a batch").register(registry);
    private final DistributionSummary requests = registry.summary("service.batch.requests");
    private final DistributionSummary tokens = registry.summary("service.batch.tokens");
    private final Counter rejected = registry.counter("service.rejected");
    private final Counter failures = registry.counter("service.failures");
    private final Counter calls = registry.counter("service.weft.calls");

    Metrics(RequestQueue queue) {
        Gauge.builder("service.queue", queue, RequestQueue::size).register(registry);
    }

    /**
     * A batch that has been answered.
     *
     * @param operatorCalls of rank 0 for it
     */
    void batch(List<Request> batch, long startNs, long operatorCalls) {
        long now = System.nanoTime();
        int count = 0;
        for (Request request : batch) {
            latency.record(now - request.queuedNs(), TimeUnit.NANOSECONDS);
            count += request.tokens();
        }
        encoding.record(now - startNs, TimeUnit.NANOSECONDS);
        requests.record(batch.size());
        tokens.record(count);
        calls.increment(operatorCalls);
        BatchEvent.ended(batch.size(), count, startNs - batch.getFirst().queuedNs(), now - startNs);
    }

    /** A request for which there was no room. */
    void rejected() {
        rejected.increment();
    }

    /** A world in which a rank has failed. */
    void failed() {
        failures.increment();
    }

    DistributionSummary requestsPerBatch() {
        return requests;
    }

    long operatorCalls() {
        return (long) calls.count();
    }

    /** All of them, as Prometheus reads them. */
    String text() {
        return registry.scrape();
    }
}
