package dev.weft.sim;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanCases;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** A small machine and a small call on it, all of one seed. */
record RandomCase(Machine machine, TestCall scenario, View view) {

    private static final int MAX_RANKS = 9;

    static RandomCase of(long seed) {
        Random random = new Random(seed);
        int ranks = 1 + random.nextInt(MAX_RANKS);
        Hosts hosts = hosts(random, ranks);
        Machine machine =
                new Machine(
                        "seed " + seed,
                        "",
                        List.of(),
                        random.nextBoolean() ? tiles(random) : cores(random),
                        new Machine.Memory(random.nextInt(2) * rate(random), random.nextInt(2)),
                        new Machine.Overheads(
                                smallUs(random), smallUs(random), smallUs(random), smallUs(random)),
                        random.nextInt(3) == 0
                                ? Machine.Consumption.BY_SOURCE
                                : Machine.Consumption.AS_PLANNED,
                        MAX_RANKS,
                        wiring(
                                random,
                                hosts.sizes().stream().distinct().count() == 1,
                                hosts.size(0)),
                        wiring(random, true, hosts.count()),
                        Machine.Copies.PLAIN);
        View view = random.nextInt(3) > 0 ? View.PIPELINED : View.values()[random.nextInt(3)];
        boolean inOrder = machine.consumption() == Machine.Consumption.AS_PLANNED;
        return new RandomCase(machine, scenario(random, hosts, inOrder), view);
    }

    Prediction run() {
        return Simulator.run(machine, scenario.on(machine), view);
    }

    Prediction runEveryRank(SpanSink sink) {
        return Simulator.runEveryRank(machine, scenario.on(machine), view, sink);
    }

    RandomCase on(Machine other) {
        return new RandomCase(other, scenario, view);
    }

    private static TestCall scenario(Random random, Hosts hosts, boolean inOrder) {
        List<Algorithm> algorithms = new ArrayList<>(List.of(Algorithm.values()));
        algorithms.remove(Algorithm.AUTO);
        if (hosts.count() > 1) {
            algorithms.remove(Algorithm.DIRECT);
        }
        Algorithm algorithm = algorithms.get(random.nextInt(algorithms.size()));
        boolean pingPong = inOrder && algorithm == Algorithm.RING && random.nextBoolean();
        List<Long> columns = new ArrayList<>();
        for (int products = random.nextInt(4); products > 0; products--) {
            columns.add(1L + random.nextInt(random.nextBoolean() ? 30 : 1200));
        }
        Map<Integer, Double> slow = new HashMap<>();
        if (random.nextInt(4) == 0) {
            slow.put(random.nextInt(hosts.ranks()), 0.5 + 3 * random.nextDouble());
        }
        return new TestCall(
                pingPong ? Algorithm.pingPongRing() : algorithm,
                chunks(random, shards(random, hosts.ranks())),
                1 + random.nextInt(8),
                hosts,
                DType.FP16,
                DType.FP32,
                columns,
                !pingPong && random.nextBoolean(),
                random.nextInt(3),
                slow);
    }

    /** One host, every rank on its own, hosts of one size, or of any. */
    private static Hosts hosts(Random random, int ranks) {
        int kind = random.nextInt(4);
        if (kind < 2) {
            return kind == 0 ? Hosts.one(ranks) : Hosts.apart(ranks);
        }
        List<Integer> sizes = new ArrayList<>();
        int even = 1 + random.nextInt(4);
        for (int left = ranks; left > 0; left -= sizes.getLast()) {
            sizes.add(Math.min(left, kind == 2 ? even : 1 + random.nextInt(4)));
        }
        return new Hosts(sizes);
    }

    /** Even, uneven, partly empty or all on one rank. */
    private static Shards shards(Random random, int ranks) {
        long[] rows = new long[ranks];
        int kind = random.nextInt(4);
        int even = random.nextInt(40);
        for (int r = 0; r < ranks; r++) {
            boolean empty = kind == 2 && random.nextInt(3) == 0;
            rows[r] = kind == 0 ? even : empty || kind == 3 ? 0 : random.nextInt(40);
        }
        if (kind == 3) {
            rows[random.nextInt(ranks)] = 1 + random.nextInt(100);
        }
        return Shards.of(rows);
    }

    private static Chunks chunks(Random random, Shards shards) {
        long cols = 1 + random.nextInt(20);
        long blockRows = 1 + random.nextInt(48);
        return PlanCases.randomChunks(random, shards, cols, blockRows);
    }

    private static Engine tiles(Random random) {
        return new TileEngine(
                1 + random.nextInt(5),
                1 + random.nextInt(8),
                1 + random.nextInt(8),
                Map.of(DType.FP16, rate(random)),
                smallUs(random));
    }

    private static Engine cores(Random random) {
        int cores = 1 + random.nextInt(6);
        int quantum = 1 + random.nextInt(8);
        return new CoreEngine(
                cores,
                random.nextBoolean() ? cores : cores * (0.5 + random.nextDouble() / 2),
                Map.of(
                        DType.FP16,
                        new CoreEngine.Costs(
                                rate(random),
                                random.nextDouble(),
                                random.nextDouble(),
                                random.nextDouble())),
                smallUs(random),
                quantum,
                quantum + random.nextInt(20));
    }

    /** Any wires, but for a torus where there is none with a place for every end and no other. */
    private static Wiring wiring(Random random, boolean fillsTorus, int ends) {
        List<Wiring.Topology> topologies = new ArrayList<>(List.of(Wiring.Topology.values()));
        if (!fillsTorus) {
            topologies.remove(Wiring.Topology.TORUS);
        }
        Wiring.Topology topology = topologies.get(random.nextInt(topologies.size()));
        double gbps = rate(random) / 10;
        return new Wiring(
                topology,
                topology == Wiring.Topology.TORUS ? torus(random, ends) : List.of(),
                smallUs(random),
                gbps,
                random.nextInt(2) * gbps * (0.1 + random.nextDouble()),
                random.nextInt(2) * random.nextInt(1000),
                random.nextBoolean(),
                random.nextBoolean(),
                random.nextInt(2) * rate(random) / 10,
                true);
    }

    /** Two dimensions where the ends allow it. */
    private static List<Integer> torus(Random random, int ends) {
        for (int size = 2; size < ends; size++) {
            if (ends % size == 0) {
                return List.of(size, ends / size);
            }
        }
        return List.of(ends);
    }

    /** From 0.1 to 10, all magnitudes alike. */
    private static double rate(Random random) {
        return Math.pow(10, 2 * random.nextDouble() - 1);
    }

    /** Nothing, or up to half a microsecond. */
    private static double smallUs(Random random) {
        return random.nextInt(2) * random.nextDouble() / 2;
    }
}
