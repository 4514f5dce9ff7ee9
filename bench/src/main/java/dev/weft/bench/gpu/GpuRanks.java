package dev.weft.bench.gpu;

import dev.weft.bench.measure.Interleaved;
import dev.weft.fabric.World;
import dev.weft.report.Samples;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;

/**
 * Ranks that are threads of this JVM and share the GPU. What they call takes turns, by the host's
 * clock. Used by one thread, while the ranks' own are at rest.
 *
 * @param <R> what a rank has prepared
 */
final class GpuRanks<R extends AutoCloseable> implements AutoCloseable {

    /** Returned by a call that the host's clock times. */
    static final long BY_HOST = -1;

    private final GpuBench bench;
    private final World world;
    private final List<R> ranks;

    /** One call on one rank, to its end. */
    @FunctionalInterface
    interface Call<R> {

        /** Its time on the device, as the first rank tells it, or {@link #BY_HOST}. */
        long takeNs(R rank, String name);
    }

    GpuRanks(GpuBench bench, int count, World.Function<R> prepared) {
        this.bench = bench;
        this.world = World.threads(count);
        try {
            this.ranks =
                    world.call(
                            fabric -> {
                                bench.gpu().bind();
                                return prepared.apply(fabric);
                            });
        } catch (RuntimeException | Error e) {
            world.close();
            throw e;
        }
    }

    List<R> all() {
        return ranks;
    }

    /** What one rank does; the others do it at the same time. */
    @FunctionalInterface
    interface Task<R> {
        void run(R rank) throws Exception;
    }

    void run(Task<R> task) {
        world.run(
                fabric -> {
                    bench.gpu().bind();
                    task.run(ranks.get(fabric.rank()));
                });
    }

    /** Of every name, the time from the first rank's start to the end of the last one's call. */
    Map<String, Samples> take(List<String> names, int warmup, int rounds, Call<R> call) {
        long[][][] startNs = new long[names.size()][rounds][ranks.size()];
        long[][][] endNs = new long[names.size()][rounds][ranks.size()];
        long[][] deviceNs = new long[names.size()][rounds];
        world.run(
                fabric -> {
                    bench.gpu().bind();
                    int rank = fabric.rank();
                    for (int round = -warmup; round < rounds; round++) {
                        // Warm-up rounds land in the first sample, which is replaced later.
                        int sample = Math.max(0, round);
                        for (int position = 0; position < names.size(); position++) {
                            int thing = Interleaved.thing(round, position, names.size());
                            fabric.barrier();
                            startNs[thing][sample][rank] = System.nanoTime();
                            long ns = call.takeNs(ranks.get(rank), names.get(thing));
                            endNs[thing][sample][rank] = System.nanoTime();
                            if (rank == 0) {
                                deviceNs[thing][sample] = ns;
                            }
                        }
                    }
                });
        Map<String, Samples> times = new LinkedHashMap<>();
        for (int thing = 0; thing < names.size(); thing++) {
            long[] ns = deviceNs[thing];
            for (int round = 0; round < rounds; round++) {
                if (ns[round] == BY_HOST) {
                    ns[round] = wallNs(startNs[thing][round], endNs[thing][round]);
                }
            }
            times.put(names.get(thing), Samples.ofNs(ns));
        }
        return times;
    }

    /** From the first rank's start to the last one's end. */
    static long wallNs(long[] startNs, long[] endNs) {
        long first = startNs[0];
        // Differences, since the clock's numbers may wrap.
        long before = LongStream.of(startNs).map(ns -> ns - first).min().orElseThrow();
        long after = LongStream.of(endNs).map(ns -> ns - first).max().orElseThrow();
        return after - before;
    }

    @Override
    public void close() {
        try (world) {
            run(AutoCloseable::close);
        }
    }
}
