package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** No command replaces or deletes a file of its user that it was not told to. */
class UsersFilesTest {

    private static final String SMALL = "-n 2 --gm 24 --gk 32 --gn 16 --warmup 0 --iterations 1";

    @TempDir private Path folder;

    private Path data() {
        return folder.resolve("d");
    }

    private static Invocation weft(String arguments) {
        return Invocation.of(arguments.split(" "));
    }

    private Invocation run(String more) {
        return weft(("run " + SMALL + " --data-dir " + data() + " " + more).strip());
    }

    /** What lies below the folder, with its text. */
    private Map<String, String> contents() throws IOException {
        Map<String, String> contents = new TreeMap<>();
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                String name = folder.relativize(file).toString();
                contents.put(name, HexFormat.of().formatHex(Files.readAllBytes(file)));
            }
        }
        return contents;
    }

    private void assertRefused(Invocation run, Map<String, String> before, String... parts)
            throws IOException {
        assertEquals(Main.USAGE, run.code(), run.out() + run.err());
        assertEquals(1, run.err().lines().count(), run.err());
        for (String part : parts) {
            assertTrue(run.err().contains(part), run.err());
        }
        assertEquals(before, contents());
    }

    @Test
    void aFileWhoseNameIsLikeThatOfAnOutputStays() throws IOException {
        Files.createDirectories(data());
        List<Path> own = new ArrayList<>();
        for (String name :
                List.of("output_rankings_2026.npy", "gathered_rank_x.bin", "output_rank7.bin")) {
            own.add(Files.writeString(data().resolve(name), "x\n"));
        }
        assertEquals(0, run("").code());
        assertEquals(0, run("--npy --keep-gathered").code());
        assertEquals(0, run("").code());
        for (Path file : own) {
            assertEquals("x\n", Files.readString(file));
        }
        assertFalse(Files.exists(data().resolve("output_rank0.npy")), "of the run before");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "output_rank1.bin",
                "pe_1_a.bin",
                "pe_0_b.bin",
                "golden.bin",
                "data.txt",
                "outputs.txt"
            })
    void aFileThatIsInTheWayIsNamed(String name) throws IOException {
        Files.createDirectories(data());
        Files.writeString(data().resolve(name), "mine\n");
        assertRefused(run(""), contents(), "holds " + name, "move it away");
    }

    @Test
    void generatedDataIsNoReasonToReplaceAUsersOwn() throws IOException {
        Files.createDirectories(data());
        Files.writeString(data().resolve("pe_0_a.bin"), "mine\n");
        Invocation made = weft("gen-data -n 2 --gm 8 --gk 8 --gn 8 --data-dir " + data());
        assertRefused(made, contents(), "holds pe_0_a.bin");
    }

    /** As after a run that was killed before it had written all, or before its stamp. */
    @Test
    void aKilledRunDoesNotLockItsUserOut() throws IOException {
        assertEquals(0, run("").code());
        Path stamp = data().resolve("outputs.txt");
        Files.writeString(stamp, "unfinished " + Files.readString(stamp));
        Path inputs = data().resolve("data.txt");
        Files.writeString(inputs, DataStamp.unfinished(2, true));
        Files.delete(data().resolve("pe_1_b.bin"));
        Invocation verify = weft("verify --data-dir " + data());
        assertEquals(Main.USAGE, verify.code());
        assertTrue(verify.err().contains("not finished"), verify.err());
        Invocation again = run("");
        assertEquals(0, again.code(), again.err());
        assertTrue(again.out().contains("Generated"), again.out());
    }

    @Test
    void inputsOfMoreRanksDoNotStay() throws IOException {
        assertEquals(0, run("").code());
        assertEquals(0, run("--seed 5").code());
        assertEquals(0, weft("run -n 3 --gm 24 --gk 32 --gn 16 --data-dir " + data()).code());
        assertEquals(0, run("").code());
        assertFalse(Files.exists(data().resolve("pe_2_a.bin")));
        assertEquals(0, weft("run -n 3 --gm 24 --gk 32 --gn 16 --data-dir " + data()).code());
    }

    /** Stamps without names, and inputs of more ranks than the stamp tells of. */
    @Test
    void foldersOfEarlierVersionsGoOnWorking() throws IOException {
        assertEquals(0, run("").code());
        Path inputs = data().resolve("data.txt");
        Files.writeString(inputs, Files.readString(inputs).replace("weft-data-2", "weft-data-1"));
        Files.writeString(data().resolve("outputs.txt"), "fp32 2 normal\n");
        Files.writeString(data().resolve("pe_2_a.bin"), "of an earlier run with 3 ranks");
        assertEquals(0, weft("verify --data-dir " + data()).code());
        assertTrue(run("").out().contains("Reusing"));
        assertEquals(0, weft("run -n 3 --gm 24 --gk 32 --gn 16 --data-dir " + data()).code());
    }
}
