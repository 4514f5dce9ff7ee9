package dev.weft.cli.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.console.Progress;
import dev.weft.cli.console.TextTarget;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.files.AtomicFile;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Output files are whole or absent, whatever becomes of whoever writes them. */
class AtomicFileTest {

    @TempDir private Path folder;

    private List<String> names() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    private static void fail(FileChannel part) throws IOException {
        part.write(ByteBuffer.wrap(new byte[4]));
        throw new IOException("No space left on device");
    }

    @Test
    void aWriteThatFailsHalfWayLeavesNothing() throws IOException {
        Path file = folder.resolve("new");
        IOException e =
                assertThrows(IOException.class, () -> AtomicFile.write(file, AtomicFileTest::fail));
        assertEquals("cannot write " + file + ": No space left on device", e.getMessage());
        assertEquals(List.of(), names());
    }

    @Test
    void aWriteThatFailsHalfWayLeavesTheOldFile() throws IOException {
        Path file = Files.writeString(folder.resolve("old"), "whole");
        assertThrows(IOException.class, () -> AtomicFile.write(file, AtomicFileTest::fail));
        assertEquals("whole", Files.readString(file));
        assertEquals(List.of("old"), names());
    }

    @Test
    void aLinkStaysALink() throws IOException {
        Path real = Files.writeString(folder.resolve("real"), "old");
        Path link = Files.createSymbolicLink(folder.resolve("link"), real);
        AtomicFile.write(link, "new");
        assertTrue(Files.isSymbolicLink(link));
        assertEquals("new", Files.readString(real));
    }

    /** Such as a folder, or a device that root could rename a file over. */
    @Test
    void whatIsNoRegularFileIsRefused() throws IOException {
        Path inside = Files.createDirectory(folder.resolve("inside"));
        for (Path target : List.of(inside, Path.of("/dev/null"))) {
            IllegalArgumentException e =
                    assertThrows(
                            IllegalArgumentException.class,
                            () -> AtomicFile.write(target, AtomicFileTest::fail));
            assertEquals(target + ": not a regular file, and so not replaced", e.getMessage());
        }
        assertEquals(List.of("inside"), names());
    }

    @Test
    void aTextIsWholeOrAbsent() throws IOException {
        Path file = folder.resolve("page.html");
        TextTarget target =
                new TextTarget("--report", file.toString(), new PrintWriter(new StringWriter()));
        assertThrows(
                IllegalStateException.class,
                () ->
                        target.write(
                                writer -> {
                                    writer.write("x".repeat(100_000));
                                    throw new IllegalStateException("half-way");
                                }));
        assertEquals(List.of(), names());
        target.write(writer -> writer.write("whole"));
        assertEquals(List.of("page.html"), names());
        assertEquals("whole", Files.readString(file));
    }

    @Test
    void aRecordIsWholeOrAbsent() throws IOException {
        Path file = Files.writeString(folder.resolve("run.json"), "{}");
        TextTarget target = TextTarget.json(file.toString(), new PrintWriter(new StringWriter()));
        assertThrows(
                IOException.class,
                () ->
                        target.writeJson(
                                json -> {
                                    json.writeStringField("half", "x".repeat(100_000));
                                    throw new IOException("No space left on device");
                                }));
        assertEquals("{}", Files.readString(file));
        assertEquals(List.of("run.json"), names());
    }

    @Test
    void aDataFolderHoldsWholeFilesAlone() throws IOException {
        ProblemSpec spec =
                new ProblemSpec(
                        2,
                        ReplicaGroups.equal(2, 1),
                        Shards.of(2, 2),
                        4,
                        4,
                        DType.FP16,
                        DType.FP16,
                        DType.FP32,
                        false,
                        false,
                        "normal",
                        1,
                        null,
                        null,
                        null);
        DataFolder data = new DataFolder(folder, spec);
        assertTrue(data.generate(true, new Progress(false)));
        Set<String> names = OwnFiles.outputNames(IntStream.range(0, 2), false, false);
        data.stampOutputs(2, names, Order.WHOLE, false);
        assertEquals(
                List.of(
                        "data.txt",
                        "golden.bin",
                        "outputs.txt",
                        "pe_0_a.bin",
                        "pe_0_b.bin",
                        "pe_1_a.bin",
                        "pe_1_b.bin"),
                names());
        assertEquals(
                "fp32 2 normal\noutput_rank0.bin\noutput_rank1.bin\n",
                Files.readString(folder.resolve("outputs.txt")));
    }
}
