package dev.weft.cli.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.console.ExitCode;
import dev.weft.sim.MachineFile;
import dev.weft.sim.Machines;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
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
        return Invocation.ofWords(arguments);
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
        assertEquals(ExitCode.USAGE, run.code(), run.out() + run.err());
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
                "outputs.txt",
                ".weft.lock"
            })
    void aFileThatIsInTheWayIsNamed(String name) throws IOException {
        Files.createDirectories(data());
        Files.writeString(data().resolve(name), "mine\n");
        assertRefused(run(""), contents(), "holds " + name, "move it away");
    }

    /** Larger than Java's memory: read whole, it would end the command. */
    @ParameterizedTest
    @ValueSource(strings = {"data.txt", "outputs.txt"})
    void aHugeStampIsRefusedUnread(String name) throws IOException {
        Files.createDirectories(data());
        Path huge = data().resolve(name);
        try (RandomAccessFile file = new RandomAccessFile(huge.toFile(), "rw")) {
            file.setLength(1L << 33);
        }
        run("").assertRefused("holds " + name + ", which Weft did not write");
        Files.writeString(data().resolve("data.txt"), "");
        try (RandomAccessFile file = new RandomAccessFile(huge.toFile(), "rw")) {
            file.setLength(1L << 33);
        }
        weft("verify --data-dir " + data())
                .assertRefused(name + ": cannot be understood (8589934592 bytes: expected at most");
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
        assertEquals(ExitCode.USAGE, verify.code());
        assertTrue(verify.err().contains("not finished"), verify.err());
        Invocation again = run("");
        assertEquals(0, again.code(), again.err());
        assertTrue(again.out().contains("Generated"), again.out());
    }

    @Test
    void inputsOfMoreRanksDoNotStay() throws IOException {
        assertEquals(0, run("").code());
        assertEquals(0, run("--seed 5").code());
        assertEquals(
                0,
                weft("run -n 3 --gm 24 --gk 32 --gn 16 --iterations 1 --data-dir " + data())
                        .code());
        assertEquals(0, run("").code());
        assertFalse(Files.exists(data().resolve("pe_2_a.bin")));
        assertEquals(
                0,
                weft("run -n 3 --gm 24 --gk 32 --gn 16 --iterations 1 --data-dir " + data())
                        .code());
    }

    /** A matrix for --a or --b, in the format that the name says. */
    private String matrix(String name, long rows, long cols) throws IOException {
        Path file = folder.resolve(name);
        try (Arena arena = Arena.ofConfined()) {
            MatrixFiles.write(file.toString(), Matrix.allocate(arena, DType.FP16, rows, cols));
        }
        return file.toString();
    }

    private Invocation runOn(String a, String b, String more) {
        String files = " --a " + a + " --b " + b + " --data-dir " + data() + " " + more;
        return weft(("run -n 2 --warmup 0 --iterations 1 --npy" + files).strip());
    }

    @Test
    void anInputThatIsAnOutputOfTheRunBeforeStays() throws IOException {
        assertEquals(0, run("--npy --rhs replicated").code());
        String b = matrix("b.npy", 16, 8);
        Path output = data().resolve("output_rank0.npy");
        Path link = Files.createSymbolicLink(folder.resolve("link.npy"), output);
        Path hardLink = Files.createLink(folder.resolve("hard.npy"), output);
        for (Path a : List.of(output, link, hardLink)) {
            assertRefused(
                    runOn(a.toString(), b, "--dtype fp32"),
                    contents(),
                    "--a " + a + ": would be replaced, as output_rank0.npy");
        }
        assertRefused(
                runOn(matrix("a.npy", 4, 24), output.toString(), ""), contents(), "--b " + output);
    }

    @Test
    void theOtherTensorsOfAFileStay() throws IOException {
        String a = matrix("a.npy", 4, 8);
        String b = matrix("b.npy", 8, 12);
        String c = matrix("model.safetensors:w", 3, 3).replace(":w", ":c");
        assertRefused(
                runOn(a, b, "--c " + c),
                contents(),
                "exists, and to write one tensor would replace all that it holds");
    }

    /** Gate and up are halves of the whole B, not of each rank's columns. */
    @Test
    void swigluOfAnOwnBNeedsAllOfItOnEachRank() throws IOException {
        String a = matrix("a.npy", 4, 8);
        String b = matrix("b.npy", 8, 12);
        assertRefused(runOn(a, b, "--epilogue swiglu"), contents(), "expected --rhs replicated");
        Invocation run = runOn(a, b, "--epilogue swiglu --rhs replicated");
        assertEquals(0, run.code(), run.err());
    }

    @Test
    void anInputThatHasTheNameOfAnOutputStays() throws IOException {
        Files.createDirectories(data());
        String a = matrix("d/output_rank1.npy", 4, 8);
        String b = matrix("b.safetensors:w", 8, 4);
        assertRefused(runOn(a, b, ""), contents(), "--a " + a);
    }

    @ParameterizedTest
    @ValueSource(strings = {"--json", "--report", "--trace"})
    void anOutputThatIsAnInputIsRefused(String option) throws IOException {
        String a = matrix("a.npy", 4, 8);
        String b = matrix("b.safetensors:w", 8, 4);
        Path link = Files.createSymbolicLink(folder.resolve("link"), Path.of(a));
        Path hardLink = Files.createLink(folder.resolve("hard"), Path.of(a));
        String tensors = b.substring(0, b.indexOf(':'));
        for (String output : List.of(a, link.toString(), hardLink.toString(), tensors)) {
            assertRefused(
                    runOn(a, b, option + " " + output),
                    contents(),
                    option + " " + output + ": is that of --",
                    "which is read");
        }
        assertFalse(Files.exists(data()), "nothing was begun");
    }

    @Test
    void anOutputThatIsAFileOfTheDataFolderIsRefused() throws IOException {
        assertEquals(0, run("").code());
        Path link = Files.createSymbolicLink(folder.resolve("link"), data());
        for (String name : List.of("data.txt", "outputs.txt", "pe_0_a.bin", "output_rank9.npy")) {
            assertRefused(
                    run("--json " + link.resolve(name)), contents(), "is a file of --data-dir");
        }
        assertEquals(0, run("--json " + data().resolve("run.json")).code());
    }

    @Test
    void twoOutputsInOneFileAreRefusedAlsoThroughLinks() throws IOException {
        Path target = folder.resolve("x");
        Path link = Files.createSymbolicLink(folder.resolve("link"), target);
        String both = " --json " + target + " --report " + link;
        for (String command :
                List.of(
                        "run " + SMALL + " --data-dir " + data() + both,
                        "run -r sim --no-verify -v Ascend910B1" + both,
                        "sweep -v Ascend910B1" + both,
                        "sweep -v Ascend910B1 --csv " + link + " --trace " + target)) {
            assertRefused(weft(command), contents(), "expected another file");
        }
    }

    @Test
    void modelsAndRecordsAreInputsToo() throws IOException {
        Path model = folder.resolve("my.json");
        MachineFile.write(Machines.named("Ascend910B1"), model);
        Path link = Files.createSymbolicLink(folder.resolve("link.json"), model);
        for (String command :
                List.of(
                        "run -r sim --no-verify -v " + model + " --json " + link,
                        "sweep -v " + link + " --csv " + model,
                        "plan -v " + model + " --gm 64 --gk 64 --gn 64 --json " + link)) {
            assertRefused(weft(command), contents(), "is that of -v, which is read");
        }
        Path hosts = Files.writeString(folder.resolve("hosts"), "localhost slots=2\n");
        String mpi = "--launcher mpi --hostfile " + hosts + " --json " + hosts;
        assertRefused(run(mpi), contents(), "is that of --hostfile, which is read");
        Path record = folder.resolve("a.json");
        assertEquals(0, weft("run -r sim --no-verify -v Ascend910B1 --json " + record).code());
        Path other = Files.createSymbolicLink(folder.resolve("a.html"), record);
        for (String more : List.of("", " --report " + other, " --trace " + record)) {
            assertRefused(weft("report " + record + more), contents(), "is that of the record");
        }
    }
}
