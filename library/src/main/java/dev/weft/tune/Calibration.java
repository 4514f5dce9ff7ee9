package dev.weft.tune;

import dev.weft.gemm.Gemm;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.Machine;
import dev.weft.sim.Machines;
import dev.weft.sim.Wiring;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;

/**
 * Measures what products, copies and signals cost on this machine while all its cores are busy. It
 * does so in rounds that time everything once, so that a slow moment of the machine does not
 * distort only one measurement; the medians of the rounds count. Nothing else should run meanwhile.
 * Used by one thread.
 */
public final class Calibration implements AutoCloseable {

    private static final int MOST_THREADS = 4;
    private static final long WARM_K = 256;
    private static final long WARM_N = 256;
    private static final long WARM_NS = 400_000_000;

    /** After this many disturbed attempts the result is accepted, and marked as disturbed. */
    private static final int MOST_ATTEMPTS = 3;

    private static final String BUSY = " while other programs used the cores";

    private final Function<DType, Gemm> engines;
    private final Effort effort;
    private final ProbeBuffers buffers;
    private final CopyProbe copies;
    private final long endNs;
    private final Map<DType, ProductProbe> products = new EnumMap<>(DType.class);
    private final List<Transport> transports = new ArrayList<>();

    /** What one round has measured about copies and signals. */
    private record Transport(
            double aloneGbps, double togetherGbps, double transferUs, double wakeUs) {}

    /**
     * Warms engines up, for at most two thirds of the time that {@code effort} allows.
     *
     * @param engines the engine for each type of A
     */
    public Calibration(Function<DType, Gemm> engines, Set<DType> aTypes, Effort effort) {
        this.engines = engines;
        this.effort = effort;
        long mostNs = effort.mostPerType().toNanos();
        this.endNs = System.nanoTime() + aTypes.size() * mostNs;
        int threads = Math.min(MOST_THREADS, Runtime.getRuntime().availableProcessors());
        this.copies = new CopyProbe(threads, effort.bufferBytes());
        this.buffers = new ProbeBuffers(threads, effort.bufferBytes());
        try {
            Map<String, Double> speeds = new HashMap<>();
            for (DType type : aTypes) {
                Gemm gemm = engines.apply(type);
                double speed =
                        speeds.computeIfAbsent(gemm.name(), name -> operationsPerNs(gemm, type));
                ProductProbe probe = new ProductProbe(gemm, type, buffers, effort.inners(), speed);
                probe.warmUp(effort.heartbeat(), mostNs * 2 / 3);
                products.put(type, probe);
            }
        } catch (RuntimeException | Error e) {
            close();
            throw e;
        }
    }

    /** Measures this machine, with all ranks on one host, for all types that engines multiply. */
    public static Machine measure(Function<DType, Gemm> engines, Effort effort) {
        Set<DType> types =
                Arrays.stream(DType.values())
                        .filter(type -> engines.apply(type).multiplies(type))
                        .collect(Collectors.toCollection(() -> EnumSet.noneOf(DType.class)));
        return measure(engines, types, effort);
    }

    /** Measures this machine for the given engines and types of A. */
    public static Machine measure(Function<DType, Gemm> engines, Set<DType> aTypes, Effort effort) {
        try (Calibration calibration = new Calibration(engines, aTypes, effort)) {
            for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
                calibration.forget();
                calibration.round(calibration::isOver);
                for (int round = 1; round < effort.rounds() && !calibration.isOver(); round++) {
                    calibration.round(calibration::isOver);
                }
                if (calibration.isOver() || !calibration.isDisturbed()) {
                    break;
                }
            }
            return calibration.machine();
        }
    }

    private boolean isOver() {
        return System.nanoTime() - endNs >= 0;
    }

    /** Whether the model would mislead for long. */
    private boolean isDisturbed() {
        return products.values().stream().anyMatch(ProductProbe::isDisturbed);
    }

    /** Whether a model was measured while nothing else ran, so that it can be kept. */
    public static boolean isUndisturbed(Machine machine) {
        return machine.sources().stream().noneMatch(source -> source.endsWith(BUSY));
    }

    /** Drops all rounds. */
    private void forget() {
        products.values().forEach(ProductProbe::forget);
        transports.clear();
    }

    /** Times everything once more. */
    public void round() {
        round(() -> false);
    }

    /** Times everything once more: always the first time, later unless time is up. */
    private void round(BooleanSupplier isOver) {
        for (ProductProbe probe : products.values()) {
            if (!probe.round(effort.heartbeat(), isOver)) {
                return;
            }
        }
        CopyProbe.Copies alone = copies.time(false);
        CopyProbe.Copies together = copies.time(true);
        transports.add(
                new Transport(
                        alone.gbps(),
                        buffers.threads() * together.gbps(),
                        together.transferUs(),
                        SignalProbe.wakeUs()));
        effort.heartbeat().run();
    }

    /** The model from the rounds so far; there must be at least one. */
    public Machine machine() {
        Map<DType, CoreEngine.Costs> costs = new EnumMap<>(DType.class);
        double blockUs = 0;
        for (Map.Entry<DType, ProductProbe> probe : products.entrySet()) {
            ProductProbe.Fitted fitted = probe.getValue().fit();
            costs.put(probe.getKey(), fitted.costs());
            blockUs = Math.max(blockUs, fitted.blockUs());
        }
        Gemm gemm = engines.apply(products.keySet().iterator().next());
        int cores = Runtime.getRuntime().availableProcessors();
        double alone = median(Transport::aloneGbps);
        double wakeUs = median(Transport::wakeUs);
        Wiring memory =
                new Wiring(
                        Wiring.Topology.BUS,
                        List.of(),
                        0,
                        Math.max(alone, median(Transport::togetherGbps)),
                        alone,
                        0,
                        true,
                        false,
                        alone,
                        true);
        return new Machine(
                Machines.HERE,
                description(engines),
                List.of(effort.how() + " on the machine itself" + (isDisturbed() ? BUSY : "")),
                new CoreEngine(
                        cores,
                        cores,
                        costs,
                        blockUs,
                        gemm.rowQuantum(),
                        gemm.blockRows(),
                        CoreEngine.CallCosts.OF_BARE_COPIES),
                new Machine.Memory(0, 2.0 * gemm.cacheBytes() / (1 << 20)),
                new Machine.Overheads(wakeUs, median(Transport::transferUs), 0, wakeUs),
                Machine.Consumption.AS_PLANNED,
                0,
                memory,
                null,
                Machine.Copies.PLAIN);
    }

    private double median(ToDoubleFunction<Transport> figure) {
        return Quantiles.median(transports.stream().mapToDouble(figure).toArray());
    }

    /** Identifies a model: another engine or number of cores is another machine. */
    static String description(Function<DType, Gemm> engines) {
        String names =
                DType.UNSCALED.stream()
                        .map(type -> engines.apply(type).name())
                        .distinct()
                        .collect(Collectors.joining(" and "));
        return Runtime.getRuntime().availableProcessors() + " cores, engine " + names;
    }

    /** The approximate speed of the engine, once its kernels are compiled. */
    private double operationsPerNs(Gemm gemm, DType type) {
        try (Arena arena = Arena.ofConfined()) {
            long rows = gemm.blockRows();
            Matrix a = Matrix.allocate(arena, type, rows, WARM_K);
            Matrix b = Matrix.allocate(arena, type, WARM_K, WARM_N);
            Matrix c = Matrix.allocate(arena, DType.FP32, rows, WARM_N);
            var packed = gemm.pack(b, false, arena);
            var scratch = gemm.scratch(WARM_K, WARM_N, arena);
            double fastest = 0;
            long start = System.nanoTime();
            do {
                long began = System.nanoTime();
                gemm.multiply(a, 0, rows, packed, c, 0, scratch);
                double ns = System.nanoTime() - began;
                fastest = Math.max(fastest, 2.0 * rows * WARM_K * WARM_N / ns);
                effort.heartbeat().run();
            } while (System.nanoTime() - start < WARM_NS);
            return fastest;
        }
    }

    @Override
    public void close() {
        try (buffers) {
            copies.close();
        }
    }
}
