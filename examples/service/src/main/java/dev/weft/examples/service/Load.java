package dev.weft.examples.service;

import dev.weft.examples.encoder.Model;
import dev.weft.examples.service.Settings.Option;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.HdrHistogram.ConcurrentHistogram;

/**
 * Calls a service from many virtual threads, with texts of random lengths, and prints rates,
 * latencies and memory. A closed loop ({@code --clients}) has so many callers, each of which calls
 * again when it has its answer: it shows the highest rate. An open loop ({@code --rate}) calls at
 * random times that do not depend on answers, and counts a latency from the time that was due, so
 * that no wait is left out: it shows what callers see.
 */
public final class Load {

    private static final List<Option> OPTIONS =
            Stream.concat(
                            Settings.OPTIONS.stream(),
                            Stream.of(
                                    new Option("--calls", 100_000, 100, 1 << 30, "of operators"),
                                    new Option("--clients", 64, 1, 100_000, "in a closed loop"),
                                    new Option("--rate", 0, 0, 1_000_000, "open loop, per second"),
                                    new Option("--http", 0, 0, 1, "1: by HTTP"),
                                    new Option("--words", 60, 1, 120, "most of a text")))
                    .toList();

    private static final String[] WORDS =
            "the cat sleeps on a warm stone while seven trains leave for distant coasts".split(" ");
    private static final Duration TIMEOUT = Duration.ofMinutes(1);
    private static final long MOST_US = 600_000_000;
    private static final double MB = 1 << 20;

    private final Service service;
    private final Map<String, Long> values;
    private final HttpClient client = HttpClient.newHttpClient();
    private final LongAdder rejected = new LongAdder();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private URI embed;
    private ConcurrentHistogram latencies;

    private Load(Service service, Map<String, Long> values) {
        this.service = service;
        this.values = values;
    }

    /** Exit codes: 1 if a call failed, 2 for bad options. */
    public static void main(String... args) throws Exception {
        Map<String, Long> values;
        try {
            values = Settings.parse(OPTIONS, args);
        } catch (IllegalArgumentException e) {
            System.err.println("load: " + e.getMessage() + "\n" + Settings.usage(OPTIONS));
            System.exit(2);
            return;
        }
        try (Arena arena = Arena.ofShared()) {
            Settings settings = Settings.of(values);
            Service service = new Service(settings, Model.load(arena));
            Load load = new Load(service, values);
            Thread ranks = Thread.ofPlatform().start(() -> load.serve(settings));
            try {
                load.measure();
            } finally {
                service.stop();
                ranks.join();
            }
        }
    }

    private void serve(Settings settings) {
        try {
            service.run(settings.world());
        } catch (Throwable e) {
            failure.compareAndSet(null, e);
        }
    }

    private void measure() throws Exception {
        long calls = values.get("--calls");
        try (Http http = new Http(service, 0);
                client) {
            embed = URI.create("http://localhost:" + http.port() + "/embed");
            phase(calls / 10);
            rejected.reset();
            long firstCall = service.metrics().operatorCalls();
            long firstBatch = service.metrics().requestsPerBatch().count();
            memory("after the warm-up");
            long start = System.nanoTime();
            ConcurrentHistogram all = phase(firstCall + calls / 2);
            long first = System.nanoTime() - start;
            memory("in the middle");
            start = System.nanoTime();
            all.add(phase(firstCall + calls));
            double seconds = (first + System.nanoTime() - start) / 1e9;
            memory("at the end");
            long batches = service.metrics().requestsPerBatch().count() - firstBatch;
            IO.println(
                    "%d requests in %.0f s: %.1f/s, %d rejected; %d batches of %.1f requests, one in %.1f ms"
                            .formatted(
                                    all.getTotalCount(),
                                    seconds,
                                    all.getTotalCount() / seconds,
                                    rejected.sum(),
                                    batches,
                                    (double) all.getTotalCount() / batches,
                                    seconds * 1000 / batches));
            IO.println(
                    "latency ms: p50 %.1f, p99 %.1f, p999 %.1f, most %.1f (%s)"
                            .formatted(
                                    all.getValueAtPercentile(50) / 1e3,
                                    all.getValueAtPercentile(99) / 1e3,
                                    all.getValueAtPercentile(99.9) / 1e3,
                                    all.getMaxValue() / 1e3,
                                    values.get("--rate") > 0
                                            ? "open loop, %d/s".formatted(values.get("--rate"))
                                            : "closed loop, %d callers"
                                                    .formatted(values.get("--clients"))));
        }
    }

    /** Calls until rank 0 has made so many calls of operators; returns the latencies in us. */
    private ConcurrentHistogram phase(long untilCalls) {
        latencies = new ConcurrentHistogram(MOST_US, 3);
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            if (values.get("--rate") > 0) {
                openLoop(threads, untilCalls);
            } else {
                for (int i = 0; i < values.get("--clients"); i++) {
                    threads.execute(() -> closedLoop(untilCalls));
                }
            }
        }
        if (failure.get() != null) {
            throw new IllegalStateException("a call failed: " + failure.get(), failure.get());
        }
        return latencies;
    }

    private boolean isUnderWay(long untilCalls) {
        return service.metrics().operatorCalls() < untilCalls && failure.get() == null;
    }

    private void closedLoop(long untilCalls) {
        Random random = new Random();
        while (isUnderWay(untilCalls)) {
            call(text(random), System.nanoTime());
        }
    }

    private void openLoop(ExecutorService threads, long untilCalls) {
        Random random = new Random();
        long dueNs = System.nanoTime();
        while (isUnderWay(untilCalls)) {
            // The times between the calls of many independent callers.
            dueNs += (long) (-Math.log(1 - random.nextDouble()) * 1e9 / values.get("--rate"));
            while (System.nanoTime() < dueNs) {
                LockSupport.parkNanos(dueNs - System.nanoTime());
            }
            long due = dueNs;
            String text = text(random);
            threads.execute(() -> call(text, due));
        }
    }

    private void call(String text, long dueNs) {
        try {
            if (values.get("--http") == 1) {
                callHttp(text);
            } else {
                service.embed(List.of(text), TIMEOUT);
            }
            latencies.recordValue(Math.min(MOST_US, (System.nanoTime() - dueNs) / 1000));
        } catch (RejectedExecutionException e) {
            rejected.increment();
        } catch (Exception e) {
            failure.compareAndSet(null, e);
        }
    }

    private void callHttp(String text) throws IOException, InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(embed)
                        .POST(HttpRequest.BodyPublishers.ofString("[\"" + text + "\"]"))
                        .timeout(TIMEOUT)
                        .build();
        HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() == 503) {
            throw new RejectedExecutionException(response.body());
        }
        if (response.statusCode() != 200) {
            throw new IOException(response.statusCode() + " " + response.body());
        }
    }

    private String text(Random random) {
        return random.ints(1 + random.nextInt(values.get("--words").intValue()), 0, WORDS.length)
                .mapToObj(word -> WORDS[word])
                .collect(Collectors.joining(" "));
    }

    private void memory(String when) throws IOException {
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        long rssKb =
                Files.readAllLines(Path.of("/proc/self/status")).stream()
                        .filter(line -> line.startsWith("VmRSS"))
                        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
                        .sum();
        IO.println(
                "%-18s %7d calls of operators, RSS %.0f MB, live heap %.1f MB"
                        .formatted(
                                when,
                                service.metrics().operatorCalls(),
                                rssKb / 1024.0,
                                (runtime.totalMemory() - runtime.freeMemory()) / MB));
    }
}
