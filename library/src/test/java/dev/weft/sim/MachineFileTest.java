package dev.weft.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.DType;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class MachineFileTest {

    private static final int CASES = 2000;

    /** As short as a file can be. */
    private static final String SHORT =
            """
            {"schema": "weft.machine/1", "name": "short",
             "engine": {"kind": "tiles", "units": 24, "tileRows": 128, "tileCols": 256,
                        "gflops": {"fp16": 10000}},
             "overheads": {"callUs": 20, "transferUs": 1, "signalUs": 2, "wakeUs": 3},
             "node": {"topology": "mesh", "latencyUs": 1.5, "gbps": 14.5}}
            """;

    private static final String CORES =
            """
            {"schema": "weft.machine/1", "name": "cores",
             "engine": {"kind": "cores", "cores": 2, "costs": {"fp32": {"gflops": 100}},
                        "rowQuantum": 6, "blockRows": 516},
             "overheads": {"callUs": 0, "transferUs": 0, "signalUs": 0, "wakeUs": 0},
             "ranksPerNode": 4,
             "node": {"topology": "torus", "torus": [2, 2], "latencyUs": 0, "gbps": 10},
             "network": {"topology": "ring", "latencyUs": 10, "gbps": 1}}
            """;

    @TempDir private Path folder;

    @ParameterizedTest
    @MethodSource("dev.weft.sim.Machines#names")
    void shippedModelsComeBackTheSame(String name) {
        Machine machine = Machines.named(name);
        Path file = folder.resolve(name + ".json");
        MachineFile.write(machine, file);
        assertEquals(machine, MachineFile.read(file));
        assertEquals(machine, parse(MachineFile.toJson(machine)));
    }

    @Test
    void randomMachinesComeBackTheSame() {
        for (int seed = 0; seed < 500; seed++) {
            Machine machine = randomMachine(new Random(seed));
            assertEquals(machine, parse(MachineFile.toJson(machine)), "seed " + seed);
        }
    }

    @Test
    void whatIsLeftOutHasDefaults() {
        Machine machine = parse(SHORT);
        assertEquals("", machine.description());
        assertEquals(List.of(), machine.sources());
        assertEquals(
                new TileEngine(24, 128, 256, Map.of(DType.FP16, 10000.0), 0), machine.engine());
        assertEquals(new Machine.Memory(0, 0), machine.memory());
        assertEquals(new Machine.Overheads(20, 1, 2, 3), machine.overheads());
        assertSame(Machine.Consumption.AS_PLANNED, machine.consumption());
        assertEquals(0, machine.ranksPerNode());
        assertEquals(
                new Wiring(Wiring.Topology.MESH, List.of(), 1.5, 14.5, 0, 0, true, false, 0, false),
                machine.node());
        assertNull(machine.network());
        Map<DType, CoreEngine.Costs> costs = Map.of(DType.FP32, new CoreEngine.Costs(100, 0, 0, 0));
        assertEquals(new CoreEngine(2, 2, costs, 0, 6, 516), parse(CORES).engine());
    }

    /** The first text is replaced by the second, and the message has to contain the third. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
                    weft.machine/1 | weft.machine/2 | schema is "weft.machine/2": expected "weft.machine/1"
                    "name": "short", | | name is missing: expected a line of text beside schema, engine
                    "name": "short" | "name": "" | name is "": expected a line of text
                    "name": "short" | "name": "a\\nb" | name is "a?b": expected a line of text
                    "name": "short" | "name": 7 | name is 7: expected a line of text
                    "name" | "sources": ["a", 3], "name" | sources[1] is 3: expected a line of text
                    "name" | "sources": "a", "name" | sources is "a": expected an array
                    "units": 24, | | engine.units is missing: expected a whole number from 1 to 16777216
                    "units": 24 | "units": "many" | engine.units is "many": expected a whole number
                    "units": 24 | "units": 0 | engine.units is 0: expected a whole number from 1
                    "units": 24 | "units": -3 | engine.units is -3: expected a whole number
                    "units": 24 | "units": 2.5 | engine.units is 2.5: expected a whole number
                    "units": 24 | "units": 99999999999999999999 | engine.units is 99999999999999999999
                    "units": 24 | "units": 16777217 | engine.units is 16777217: expected
                    "units": 24 | "units": null | engine.units is null: expected
                    "units": 24 | "units": 24, "unit": [] | engine.unit is an empty array: expected no such field, but kind, units
                    "units": 24 | "units": 24, "units": 24 | is not JSON in line 2, column
                    "tiles" | "hexagons" | engine.kind is "hexagons": expected one of tiles, cores
                    {"fp16": 10000} | {} | engine: 24 units with tiles of 128 x 256
                    {"fp16": 10000} | {"fp64": 1} | engine.gflops.fp64 is 1: expected no such field, but fp32, fp16, bf16, e4m3, e5m2
                    {"fp16": 10000} | {"fp16": 0} | engine.gflops.fp16 is 0: expected a number above 0
                    {"fp16": 10000} | {"fp16": true} | engine.gflops.fp16 is true: expected a number
                    {"fp16": 10000} | {"fp16": 1e999} | engine.gflops.fp16 is 1e999: expected a number
                    {"fp16": 10000} | {"fp16": NaN} | is not JSON in line 3
                    {"fp16": 10000} | 10000 | engine.gflops is 10000: expected an object
                    "wakeUs": 3 | "wakeUs": -3 | overheads.wakeUs is -3: expected a number of 0 or more
                    , "wakeUs": 3 | | overheads.wakeUs is missing: expected a number
                    "node" | "ranksPerNode": -1, "node" | ranksPerNode is -1: expected a whole number from 0
                    "node" | "memory": {"onChipMib": "24 MiB"}, "node" | memory.onChipMib is "24 MiB": expected a number
                    "node" | "consumption": "random", "node" | consumption is "random": expected one of as-planned, by-source
                    "mesh" | "star" | node.topology is "star": expected one of mesh, switch, ring, torus, bus
                    "mesh" | "torus" | node: TORUS with dimensions []
                    "mesh" | "torus", "torus": [2, 0] | node.torus[1] is 0: expected a whole number from 1
                    "mesh" | "torus", "torus": [2, 3] | ranksPerNode is 0: expected the number of places in a torus of [2, 3]
                    "gbps": 14.5 | "gbps": 0 | node.gbps is 0: expected a number above 0
                    "gbps": 14.5 | "gbps": 1, "duplex": "yes" | node.duplex is "yes": expected true or false
                    "gbps": 14.5 | "gbps": 1, "latency": {} | node.latency is an object: expected no such field
                    14.5}} | 14.5}, "network": {"topology": "bus", "latencyUs": 1, "gbps": 1}} | 0 ranks per node and a network
                    14.5}} | 14.5}, "network": null} | network is null: expected an object
                    14.5}} | 14.5}} {} | has text behind its JSON object
                    14.5}} | 14.5} | is not JSON in line 6
                    """)
    void refusals(String from, String to, String message) {
        assertTrue(SHORT.contains(from), from);
        String changed = SHORT.replace(from, to == null ? "" : to);
        assertRefused("short.json", () -> parse(changed), message);
    }

    @Test
    void enginesOfCoresAreChecked() {
        assertRefused(
                "short.json",
                () -> parse(CORES.replace("\"cores\": 2", "\"cores\": 2, \"capacity\": 3")),
                "engine: 2 cores that do the work of 3.0");
        assertRefused(
                "short.json",
                () -> parse(CORES.replace("{\"gflops\": 100}", "{\"gflops\": 100, \"bNs\": -1}")),
                "engine.costs.fp32.bNs is -1: expected a number of 0 or more");
        assertRefused(
                "short.json",
                () -> parse(CORES.replace("\"ranksPerNode\": 4", "\"ranksPerNode\": 5")),
                "ranksPerNode is 5: expected the number of places in a torus of [2, 2]");
    }

    @Test
    void otherFilesAreRefused() throws IOException {
        assertRefused("short.json", () -> parse(""), "not a JSON object");
        assertRefused("short.json", () -> parse("[1]"), "not a JSON object");
        assertRefused("short.json", () -> parse("name: short"), "is not JSON in line 1, column");
        assertRefused("short.json", () -> parse("{\"a\":".repeat(5000)), "is not JSON");
        Path missing = folder.resolve("missing.json");
        assertRefused(missing, () -> MachineFile.read(missing), "no such file");
        assertRefused(folder, () -> MachineFile.read(folder), "not a regular file");
        Path large = folder.resolve("large.json");
        Files.writeString(large, SHORT + " ".repeat(1 << 20));
        assertRefused(large, () -> MachineFile.read(large), "has more than 1048576 bytes");
    }

    @Test
    void aFileIsReplacedWhole() throws IOException {
        Path file = folder.resolve("machine.json");
        MachineFile.write(parse(SHORT), file);
        Path link = Files.createSymbolicLink(folder.resolve("link.json"), file);
        MachineFile.write(parse(CORES), link);
        assertEquals(parse(CORES), MachineFile.read(file));
        assertTrue(Files.isSymbolicLink(link));
        Path nowhere = folder.resolve("no").resolve("machine.json");
        assertRefused(nowhere, () -> MachineFile.write(parse(SHORT), nowhere), "does not exist");
        assertRefused(folder, () -> MachineFile.write(parse(SHORT), folder), "not replaced");
        try (Stream<Path> files = Files.list(folder)) {
            assertEquals(2, files.count());
        }
    }

    @Test
    void whatCouldNotBeReadIsNotWritten() {
        Machine good = parse(SHORT);
        Path file = folder.resolve("machine.json");
        for (double bad : new double[] {Double.NaN, Double.POSITIVE_INFINITY, -1}) {
            Machine machine =
                    new Machine(
                            "bad",
                            "",
                            List.of(),
                            good.engine(),
                            new Machine.Memory(bad, 0),
                            good.overheads(),
                            good.consumption(),
                            0,
                            good.node(),
                            null,
                            Machine.Copies.PLAIN);
            assertRefused("bad", () -> MachineFile.write(machine, file), "memory.gbps is");
            assertFalse(Files.exists(file));
        }
    }

    @Test
    void randomDamageIsReadOrRefused() {
        int refused = 0;
        for (int seed = 0; seed < CASES; seed++) {
            Random random = new Random(seed);
            String name = Machines.names().get(random.nextInt(Machines.names().size()));
            byte[] bytes =
                    MachineFile.toJson(Machines.named(name)).getBytes(StandardCharsets.UTF_8);
            for (int n = 1 + random.nextInt(3); n > 0; n--) {
                bytes = damaged(bytes, random);
            }
            refused += isRefused(bytes, "seed " + seed) ? 1 : 0;
        }
        assertTrue(refused > CASES / 5, "only " + refused + " were refused");
        assertTrue(refused < CASES, "none was read");
    }

    private static byte[] damaged(byte[] bytes, Random random) {
        if (bytes.length == 0) {
            return new byte[random.nextInt(20)];
        }
        int at = random.nextInt(bytes.length);
        byte[] result = bytes.clone();
        switch (random.nextInt(5)) {
            case 0 -> result[at] ^= (byte) (1 << random.nextInt(8));
            case 1 -> result[at] = (byte) random.nextInt();
            case 2 ->
                    result[at] = (byte) "{}[]\",:-+.0123456789eE\\/ \n".charAt(random.nextInt(26));
            case 3 -> result = Arrays.copyOf(bytes, at);
            default -> System.arraycopy(bytes, at, result, at / 2, bytes.length - at);
        }
        return result;
    }

    /** Any other exception than the promised one ends the test. */
    private static boolean isRefused(byte[] bytes, String context) {
        try {
            MachineFile.parse("damaged", bytes);
            return false;
        } catch (IllegalArgumentException refusal) {
            String message = refusal.getMessage();
            assertSame(IllegalArgumentException.class, refusal.getClass(), context);
            assertEquals(1, message.lines().count(), context + ": " + message);
            assertTrue(message.startsWith("damaged: "), context + ": " + message);
            assertFalse(message.length() > 600, context + ": " + message);
            return true;
        } catch (RuntimeException | Error e) {
            throw new AssertionError(context + " gave " + e, e);
        }
    }

    private static Machine parse(String json) {
        return MachineFile.parse("short.json", json.getBytes(StandardCharsets.UTF_8));
    }

    private static void assertRefused(Object origin, Executable action, String part) {
        IllegalArgumentException refusal = assertThrows(IllegalArgumentException.class, action);
        String message = refusal.getMessage();
        assertEquals(1, message.lines().count(), message);
        assertTrue(message.startsWith(origin + ": "), message);
        assertTrue(message.contains(part), message + " lacks " + part);
    }

    private static Machine randomMachine(Random random) {
        boolean torus = random.nextBoolean();
        Wiring network = random.nextBoolean() ? randomWiring(random, Wiring.Topology.RING) : null;
        return new Machine(
                "m\u00e4chine \"" + random.nextInt() + "\" \\",
                random.nextBoolean() ? "" : "d\u2028escription",
                List.of("a", "\uD83D\uDE00").subList(0, random.nextInt(3)),
                randomEngine(random),
                new Machine.Memory(amount(random), amount(random)),
                new Machine.Overheads(amount(random), amount(random), amount(random), 0),
                Machine.Consumption.values()[random.nextInt(2)],
                torus ? 6 : 1 + random.nextInt(100),
                randomWiring(random, torus ? Wiring.Topology.TORUS : Wiring.Topology.BUS),
                network,
                random.nextBoolean()
                        ? Machine.Copies.PLAIN
                        : new Machine.Copies(
                                amount(random), amount(random), amount(random), amount(random)));
    }

    private static Engine randomEngine(Random random) {
        if (random.nextBoolean()) {
            return new TileEngine(
                    1 + random.nextInt(200),
                    1 + random.nextInt(1 << 24),
                    256,
                    Map.of(DType.BF16, 1 + amount(random), DType.FP32, 1 + amount(random)),
                    amount(random));
        }
        Map<DType, CoreEngine.Costs> costs = new EnumMap<>(DType.class);
        for (DType type : DType.UNSCALED) {
            costs.put(
                    type,
                    new CoreEngine.Costs(
                            1 + amount(random), amount(random), amount(random), amount(random)));
        }
        return new CoreEngine(8, 8 * (1 - random.nextDouble()), costs, amount(random), 6, 516);
    }

    private static Wiring randomWiring(Random random, Wiring.Topology topology) {
        return new Wiring(
                topology,
                topology == Wiring.Topology.TORUS ? List.of(2, 3) : List.of(),
                amount(random),
                1 + amount(random),
                amount(random),
                amount(random),
                random.nextBoolean(),
                random.nextBoolean(),
                amount(random),
                random.nextBoolean());
    }

    private static double amount(Random random) {
        return switch (random.nextInt(6)) {
            case 0 -> 0;
            case 1 -> random.nextInt(1000);
            case 2 -> random.nextDouble();
            case 3 -> Double.MIN_VALUE * (1 + random.nextInt(9));
            case 4 -> 1e300 * random.nextDouble();
            default -> 1e3 * random.nextGaussian() * random.nextGaussian() + 1e5;
        };
    }

    /** A terminal takes some characters beyond ASCII for commands. */
    @Test
    void controlCharactersOfAFieldAreNotRepeated() {
        byte[] json = "{\"schema\": \"weft\\u009b31m\"}".getBytes(StandardCharsets.UTF_8);
        assertRefused("m.json", () -> MachineFile.parse("m.json", json), "weft?31m");
    }
}
