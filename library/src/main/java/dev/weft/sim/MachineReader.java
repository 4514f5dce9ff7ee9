package dev.weft.sim;

import dev.weft.json.JsonObject;
import dev.weft.sim.Wiring.Topology;
import dev.weft.tensor.DType;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** Makes a {@link Machine} from the fields of its file. Stateless and thread-safe. */
final class MachineReader {

    /** The types of engine. */
    enum EngineType {
        TILES,
        CORES;

        static EngineType of(Engine engine) {
            return engine instanceof TileEngine ? TILES : CORES;
        }
    }

    /** No machine has more of anything than this. */
    private static final int MAX_COUNT = 1 << 24;

    private MachineReader() {}

    static Machine machine(JsonObject file) {
        if (!file.line("schema").equals(MachineFile.SCHEMA)) {
            throw file.refusal("schema", '"' + MachineFile.SCHEMA + '"');
        }
        String name = file.line("name");
        String description = file.line("description", "");
        List<String> sources = file.has("sources") ? file.lines("sources") : List.of();
        Engine engine = engine(file.object("engine"));
        Machine.Memory memory =
                file.has("memory") ? memory(file.object("memory")) : new Machine.Memory(0, 0);
        Machine.Overheads overheads = overheads(file.object("overheads"));
        Machine.Consumption consumption =
                file.has("consumption")
                        ? file.choice("consumption", Machine.Consumption.values())
                        : Machine.Consumption.AS_PLANNED;
        int ranksPerNode = file.has("ranksPerNode") ? file.count("ranksPerNode", 0, MAX_COUNT) : 0;
        Wiring node = wiring(file.object("node"));
        Wiring network = file.has("network") ? wiring(file.object("network")) : null;
        Machine.Copies copies =
                file.has("copies") ? copies(file.object("copies")) : Machine.Copies.PLAIN;
        return file.build(
                () -> {
                    checkTorus(node, ranksPerNode);
                    return new Machine(
                            name,
                            description,
                            sources,
                            engine,
                            memory,
                            overheads,
                            consumption,
                            ranksPerNode,
                            node,
                            network,
                            copies);
                });
    }

    /** Refuses ranks that have no place in the torus: they could not be reached. */
    private static void checkTorus(Wiring node, int ranksPerNode) {
        if (node.topology() == Topology.TORUS && node.places() != ranksPerNode) {
            throw new IllegalArgumentException(
                    "ranksPerNode is %s: expected the number of places in a torus of %s"
                            .formatted(ranksPerNode, node.torus()));
        }
    }

    private static Engine engine(JsonObject fields) {
        return switch (fields.choice("kind", EngineType.values())) {
            case TILES -> tileEngine(fields);
            case CORES -> coreEngine(fields);
        };
    }

    private static TileEngine tileEngine(JsonObject fields) {
        int units = fields.count("units", 1, MAX_COUNT);
        int tileRows = fields.count("tileRows", 1, MAX_COUNT);
        int tileCols = fields.count("tileCols", 1, MAX_COUNT);
        JsonObject rates = fields.object("gflops");
        Map<DType, Double> gflops = byType(rates, rates::positive);
        double tileUs = fields.amount("tileUs", 0);
        return fields.build(() -> new TileEngine(units, tileRows, tileCols, gflops, tileUs));
    }

    private static CoreEngine coreEngine(JsonObject fields) {
        int cores = fields.count("cores", 1, MAX_COUNT);
        double capacity = fields.has("capacity") ? fields.positive("capacity") : cores;
        JsonObject types = fields.object("costs");
        Map<DType, CoreEngine.Costs> costs = byType(types, type -> costs(types.object(type)));
        double blockUs = fields.amount("blockUs", 0);
        int rowQuantum = fields.count("rowQuantum", 1, MAX_COUNT);
        int blockRows = fields.count("blockRows", 1, MAX_COUNT);
        CoreEngine.CallCosts inCalls =
                fields.has("inCalls")
                        ? callCosts(fields.object("inCalls"))
                        : CoreEngine.CallCosts.DEFAULTS;
        return fields.build(
                () ->
                        new CoreEngine(
                                cores, capacity, costs, blockUs, rowQuantum, blockRows, inCalls));
    }

    private static CoreEngine.CallCosts callCosts(JsonObject fields) {
        CoreEngine.CallCosts other = CoreEngine.CallCosts.DEFAULTS;
        double copyRate = fields.has("copyRate") ? fields.positive("copyRate") : other.copyRate();
        double store = fields.amount("store", other.store());
        double resume = fields.amount("resume", other.resume());
        double addition = fields.amount("addition", other.addition());
        double finish = fields.amount("finish", other.finish());
        double rounding = fields.amount("rounding", other.rounding());
        return fields.build(
                () ->
                        new CoreEngine.CallCosts(
                                copyRate, store, resume, addition, finish, rounding));
    }

    private static CoreEngine.Costs costs(JsonObject fields) {
        double gflops = fields.positive("gflops");
        double rowNs = fields.amount("rowNs", 0);
        double bNs = fields.amount("bNs", 0);
        double outNs = fields.amount("outNs", 0);
        return fields.build(() -> new CoreEngine.Costs(gflops, rowNs, bNs, outNs));
    }

    /** Applies {@code field} to the field of each type that is present. */
    private static <T> Map<DType, T> byType(JsonObject fields, Function<String, T> field) {
        Map<DType, T> values = new EnumMap<>(DType.class);
        for (DType type : DType.values()) {
            if (fields.has(type.label())) {
                values.put(type, field.apply(type.label()));
            }
        }
        return fields.build(() -> values);
    }

    private static Machine.Memory memory(JsonObject fields) {
        double gbps = fields.amount("gbps", 0);
        double onChipMib = fields.amount("onChipMib", 0);
        boolean arrivalsOnChip = fields.flag("arrivalsOnChip", false);
        return fields.build(() -> new Machine.Memory(gbps, onChipMib, arrivalsOnChip));
    }

    private static Machine.Overheads overheads(JsonObject fields) {
        double callUs = fields.amount("callUs");
        double transferUs = fields.amount("transferUs");
        double signalUs = fields.amount("signalUs");
        double wakeUs = fields.amount("wakeUs");
        return fields.build(() -> new Machine.Overheads(callUs, transferUs, signalUs, wakeUs));
    }

    private static Machine.Copies copies(JsonObject fields) {
        double narrowBytes = fields.amount("narrowBytes", 0);
        double narrowRowNs = fields.amount("narrowRowNs", 0);
        double farBytes = fields.amount("farBytes", 0);
        double farRowNs = fields.amount("farRowNs", 0);
        return fields.build(() -> new Machine.Copies(narrowBytes, narrowRowNs, farBytes, farRowNs));
    }

    private static Wiring wiring(JsonObject fields) {
        Topology topology = fields.choice("topology", Topology.values());
        List<Integer> torus =
                fields.has("torus") ? fields.counts("torus", 1, MAX_COUNT) : List.of();
        double latencyUs = fields.amount("latencyUs");
        double gbps = fields.positive("gbps");
        double laneGbps = fields.amount("laneGbps", 0);
        double rampBytes = fields.amount("rampBytes", 0);
        boolean duplex = fields.flag("duplex", true);
        boolean portPerRank = fields.flag("portPerRank", false);
        double coreGbps = fields.amount("coreGbps", 0);
        boolean direct = fields.flag("direct", false);
        return fields.build(
                () ->
                        new Wiring(
                                topology,
                                torus,
                                latencyUs,
                                gbps,
                                laneGbps,
                                rampBytes,
                                duplex,
                                portPerRank,
                                coreGbps,
                                direct));
    }
}
