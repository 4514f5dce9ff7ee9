package dev.weft.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.tensor.DType;
import java.io.IOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class MachinesTest {

    @TempDir private Path folder;

    @ParameterizedTest
    @MethodSource("dev.weft.sim.Machines#names")
    void shippedModelsAreComplete(String name) {
        Machine machine = Machines.named(name);
        assertEquals(name, machine.name());
        assertFalse(machine.description().isEmpty());
        assertFalse(machine.sources().isEmpty());
        assertTrue(machine.engine().knows(DType.FP16));
        assertTrue(machine.engine().knows(DType.BF16));
        assertEquals(machine, Machines.of(name.toUpperCase(Locale.ROOT)));
        assertEquals(machine, Machines.named(name.toLowerCase(Locale.ROOT)));
    }

    @ParameterizedTest
    @CsvSource({
        "Ascend910B, Ascend910B1, Ascend910B",
        "910b1, Ascend910B1, Ascend910B1",
        "Ascend910B2C, Ascend910B2, Ascend910B2C",
        "910B4, Ascend910B3, Ascend910B4",
        "ascend910b4-1, Ascend910B3, Ascend910B4-1",
        "910C, Ascend910C, Ascend910C",
        "910_9391, Ascend910C, Ascend910_9391",
        "Ascend910_9362, Ascend910C, Ascend910_9362"
    })
    void everyChipOfAnAscendA2OrA3HasAModel(String given, String model, String name) {
        assertEquals(model, Machines.of(given).name());
        assertEquals(name, Machines.ascendName(given));
    }

    @ParameterizedTest
    @ValueSource(strings = {"Ascend910", "Ascend310P3", "910A", "910B1.x", "Ascend910_12"})
    void otherChipsHaveNone(String given) {
        assertThrows(IllegalArgumentException.class, () -> Machines.of(given));
    }

    @Test
    void nodesOfEightReachFourThousandRanks() {
        for (String name : List.of("h100-nvlink8", "h200-nvlink8")) {
            Machine machine = Machines.named(name);
            assertEquals(512, machine.hosts(4096).count());
            assertTrue(machine.network().portPerRank());
        }
        assertEquals(1, Machines.named("Ascend910B1").hosts(8).count());
        assertThrows(IllegalArgumentException.class, () -> Machines.named("h200-pcie").hosts(9));
    }

    @Test
    void namesAreSortedForPeople() {
        List<String> sorted = new ArrayList<>(Machines.names());
        sorted.sort(Comparator.comparing(MachinesTest::sortKey));
        assertEquals(sorted, Machines.names());
        assertEquals(Machines.names().size(), sorted.stream().distinct().count());
    }

    /** Numbers by their value, capitals like small letters. */
    private static String sortKey(String name) {
        return Pattern.compile("\\d+")
                .matcher(name.toLowerCase(Locale.ROOT))
                .replaceAll(
                        digits ->
                                String.format(
                                        Locale.ROOT, "%09d", Integer.valueOf(digits.group())));
    }

    @Test
    void everyFileHasAName() throws IOException, URISyntaxException {
        URL one = Machines.class.getResource("machines/trn2.json");
        assumeTrue(one.getProtocol().equals("file"), "an archive cannot be listed: " + one);
        try (Stream<Path> files = Files.list(Path.of(one.toURI()).getParent())) {
            List<String> found = files.map(file -> file.getFileName().toString()).sorted().toList();
            assertEquals(
                    Machines.names().stream().map(name -> name + ".json").sorted().toList(), found);
        }
    }

    @Test
    void unknownNamesListTheKnownOnes() {
        String message = refusal(() -> Machines.of("h300"));
        assertTrue(message.startsWith("unknown machine 'h300': expected one of Ascend910B1, "));
        for (String name : Machines.names()) {
            assertTrue(message.contains(name), message);
        }
        assertTrue(message.endsWith(", here or a path that ends in .json"), message);
        assertTrue(refusal(() -> Machines.named("a\nb")).contains("'a?b'"));
        assertTrue(refusal(() -> Machines.of("a\0.json")).startsWith("a?.json: not a path: "));
    }

    @Test
    void filesAreNamedByTheirPath() {
        Path file = folder.resolve("mine.JSON");
        MachineFile.write(Machines.named("trn2"), file);
        assertEquals(Machines.named("trn2"), Machines.of(file.toString()));
        Path missing = folder.resolve("trn2.json");
        assertEquals(missing + ": no such file", refusal(() -> Machines.of(missing.toString())));
    }

    @Test
    void thisMachineIsAmongTheCaches() {
        Path inCaches = Path.of("caches", "weft");
        assertEquals(inCaches, Machines.hereFolder("caches", "home"));
        Path atHome = Path.of("home", ".cache", "weft");
        assertEquals(atHome, Machines.hereFolder(null, "home"));
        assertEquals(atHome, Machines.hereFolder(" ", "home"));
        assertEquals(
                "machine-2-cores-engine-neon-and-amx.json",
                Machines.herePath("2 cores, engine neon and amx").getFileName().toString());
    }

    @Test
    void hereIsTheNewestModelOfAsManyCores() throws IOException {
        String missing = refusal(() -> Machines.newest(folder, 2));
        assertTrue(missing.contains("./weft calibrate"), missing);
        assertEquals(
                missing.substring(missing.indexOf(": ")),
                refusal(() -> Machines.newest(folder.resolve("none"), 2))
                        .replaceFirst("^[^:]*", ""));
        Path older = Files.writeString(folder.resolve("machine-2-cores-engine-a.json"), "{}");
        Path newer = Files.writeString(folder.resolve("machine-2-cores-engine-b.json"), "{}");
        Files.writeString(folder.resolve("machine-12-cores-engine-a.json"), "{}");
        Files.setLastModifiedTime(older, FileTime.fromMillis(1_000));
        Files.setLastModifiedTime(newer, FileTime.fromMillis(2_000));
        assertEquals(newer, Machines.newest(folder, 2));
    }

    private static String refusal(Executable action) {
        String message = assertThrows(IllegalArgumentException.class, action).getMessage();
        assertEquals(1, message.lines().count(), message);
        return message;
    }
}
