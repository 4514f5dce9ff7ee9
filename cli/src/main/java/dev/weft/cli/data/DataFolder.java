package dev.weft.cli.data;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.data.FileOperands.Piece;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.ProblemSpec.Block;
import dev.weft.files.AtomicFile;
import dev.weft.gemm.Float64Oracle;
import dev.weft.plan.Reduction.Order;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import dev.weft.tensor.MatrixFiles.Located;
import dev.weft.tensor.data.DataSource;
import dev.weft.tensor.data.NormalData;
import dev.weft.tensor.data.Seed19Data;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.channels.Channels;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * Generated inputs and golden in a folder, in the layout of the Ascend example: {@code
 * pe_<r>_a.bin} and {@code pe_<r>_b.bin} per rank, {@code golden.bin} (fp32, [groups x M, N]) for
 * all. A stamp names the problem they belong to and is written last, so that only a complete folder
 * is reused.
 */
public record DataFolder(Path folder, ProblemSpec spec) {

    private static final String STAMP = OwnFiles.STAMP;

    /** Rows that one thread generates and writes at a time. */
    private static final long SLICE_ROWS = 256;

    /** Streams of the generator: A and B must not repeat each other. */
    private static final int A_STREAM = 0;

    private static final int B_STREAM = 1;

    Path shardFile(int rank) {
        return folder.resolve(OwnFiles.shardName(rank));
    }

    Path bFile(int rank) {
        return folder.resolve(OwnFiles.bName(rank));
    }

    public Path golden() {
        return folder.resolve(OwnFiles.GOLDEN);
    }

    public Path output(int rank) {
        return folder.resolve(OwnFiles.outputName(rank));
    }

    private OwnFiles own() {
        return new OwnFiles(folder);
    }

    private boolean holds(boolean withGolden) throws IOException {
        Path stamp = folder.resolve(STAMP);
        if (!Files.isRegularFile(stamp)) {
            return false;
        }
        String text = OwnFiles.readStamp(stamp);
        return text.equals(DataStamp.write(spec, withGolden))
                && OwnFiles.inputNames(spec.ranks(), withGolden).stream()
                        .allMatch(name -> Files.isRegularFile(folder.resolve(name)));
    }

    /** Whether inputs, and golden if wanted, are there. */
    private boolean isReady(boolean withGolden) throws IOException {
        return holds(true) || !withGolden && holds(false);
    }

    /** Refuses if {@link #generate} would replace a file that is not Weft's. */
    public void refuseOtherInputs(boolean withGolden) throws IOException {
        Set<String> own = own().inputs();
        if (!isReady(withGolden)) {
            own().refuseOthers(OwnFiles.inputNames(spec.ranks(), withGolden), own);
        }
    }

    /** Whether {@link #generate} has anything to write. */
    public boolean lacksInputs(boolean withGolden) throws IOException {
        return !isReady(withGolden);
    }

    /** Bytes of Weft's own files here, which make room for new ones. */
    public long ownBytes() throws IOException {
        return own().bytes();
    }

    /** The names of all files that a run with these outputs replaces or deletes. */
    public Set<String> replacedBy(Set<String> outputs) throws IOException {
        Set<String> names = new LinkedHashSet<>(own().outputs());
        names.addAll(outputs);
        names.add(OwnFiles.OUTPUT_STAMP);
        return names;
    }

    /** Refuses if a run that writes these would replace a file that is not Weft's. */
    public void refuseOtherOutputs(Set<String> outputs) throws IOException {
        own().refuseOthers(outputs, own().outputs());
    }

    /**
     * Before a run: outputs of an earlier one must not be mistaken for this one's. The names of
     * what it will write are recorded first, so that a killed run's files are known too.
     */
    public void discardOutputs(Set<String> outputs) throws IOException {
        Files.createDirectories(folder);
        Set<String> all = new LinkedHashSet<>(own().outputs());
        Set<String> old = Set.copyOf(all);
        all.addAll(outputs);
        OutputStamp.writeUnfinished(folder, spec, all);
        own().delete(old);
    }

    /**
     * Writes one rank's results.
     *
     * @param gatheredOrNull null if gathered A is not kept
     * @param npy whether to write .npy files next to the raw ones, which are the verified ones
     */
    public void writeOutputs(int rank, Matrix product, Matrix gatheredOrNull, boolean npy)
            throws IOException {
        write(output(rank), product, npy);
        if (gatheredOrNull != null) {
            write(folder.resolve(OwnFiles.gatheredName(rank)), gatheredOrNull, npy);
        }
    }

    private static void write(Path raw, Matrix matrix, boolean npy) throws IOException {
        MatrixFiles.write(raw.toString(), matrix);
        if (npy) {
            String name = OwnFiles.npyName(raw.getFileName().toString());
            MatrixFiles.write(raw.resolveSibling(name).toString(), matrix);
        }
    }

    /**
     * After a run: records what the outputs are, and of how many ranks from 0 on.
     *
     * @param order the order of summation, if products are summed
     * @param finished whether an epilogue was applied to the products
     */
    public void stampOutputs(int ranks, Set<String> outputs, Order order, boolean finished)
            throws IOException {
        OutputStamp.write(folder, spec, ranks, order, finished, outputs);
    }

    /** How many ranks, from 0 on, have written outputs; all if not recorded. */
    public int outputs() {
        return OutputStamp.read(folder).ranks(folder, spec.ranks());
    }

    /** The order in which the run summed its outputs. */
    public Order order() {
        return OutputStamp.read(folder).order();
    }

    /**
     * The problem whose data the folder holds.
     *
     * @param outTypeOrNull the type of the outputs, or null for what the run recorded
     */
    public static DataFolder existing(Path folder, DType outTypeOrNull) {
        Path stamp = folder.resolve(STAMP);
        if (!Files.isRegularFile(stamp)) {
            throw new UsageException(
                    "--data-dir %s: holds no generated data (no %s): run gen-data or run first",
                    folder, STAMP);
        }
        OutputStamp outputs = OutputStamp.read(folder);
        outputs.checkVerifiable(folder);
        DType outType = outTypeOrNull == null ? outputs.type(folder) : outTypeOrNull;
        try {
            String text = OwnFiles.readStamp(stamp);
            return new DataFolder(folder, DataStamp.read(text, outputs.op(), outType));
        } catch (IOException | UsageException e) {
            throw OutputStamp.misread(stamp, e);
        }
    }

    /** Writes inputs and, if wanted, golden, unless they are there; returns whether it had to. */
    public boolean generate(boolean withGolden, Progress progress) {
        try {
            if (isReady(withGolden)) {
                return false;
            }
            Files.createDirectories(folder);
            discardInputs(withGolden);
            try (Arena arena = Arena.ofShared()) {
                writeInputs(progress);
                if (withGolden) {
                    writeGolden(arena, progress);
                }
            }
            String stamp = DataStamp.write(spec, withGolden);
            AtomicFile.write(folder.resolve(STAMP), stamp);
            return true;
        } catch (FileSystemException e) {
            throw new UsageException(
                    "--data-dir " + folder + ": cannot write there: " + ErrorMessage.of(e));
        } catch (IOException e) {
            throw new UncheckedIOException("cannot write data: " + e.getMessage(), e);
        }
    }

    /** First records which files can no longer, or not yet, be relied on. */
    private void discardInputs(boolean withGolden) throws IOException {
        Set<String> old = own().inputs();
        int ranks = spec.ranks();
        while (old.contains(OwnFiles.shardName(ranks)) || old.contains(OwnFiles.bName(ranks))) {
            ranks++;
        }
        boolean golden = withGolden || old.contains(OwnFiles.GOLDEN);
        String stamp = DataStamp.unfinished(ranks, golden);
        AtomicFile.write(folder.resolve(STAMP), stamp);
        own().delete(old);
    }

    private void writeInputs(Progress progress) throws IOException {
        progress.begin("generating A and B", spec.ranks());
        for (int rank = 0; rank < spec.ranks(); rank++) {
            try (Arena arena = Arena.ofShared()) {
                Matrix shard =
                        generated(spec, A_STREAM, spec.aType(), spec.a(rank), spec.k(), arena);
                MatrixFiles.write(shardFile(rank).toString(), shard);
                writeB(rank, arena);
            }
            progress.advance(rank + 1);
        }
        progress.end();
    }

    /** A part of a matrix of so many columns, as the problem's generator makes it. */
    static Matrix generated(
            ProblemSpec spec, int stream, DType type, Block part, long totalCols, Arena arena) {
        Matrix matrix = Matrix.allocate(arena, type, part.rows(), part.cols());
        DataSource source =
                spec.data().equals("seed19")
                        ? new Seed19Data(stream)
                        : new NormalData(spec.seed(), stream);
        LongStream.range(0, Math.ceilDiv(matrix.rows(), SLICE_ROWS))
                .parallel()
                .forEach(
                        slice -> {
                            long at = slice * SLICE_ROWS;
                            Matrix rows = matrix.rows(at, Math.min(SLICE_ROWS, matrix.rows() - at));
                            source.fill(rows, part.firstRow() + at, part.firstCol(), totalCols);
                        });
        return matrix;
    }

    private void writeB(int rank, Arena arena) throws IOException {
        if (firstWithSameB(rank) != rank) {
            // Equal bytes need no second copy if the file system can link.
            Files.deleteIfExists(bFile(rank));
            Path original = bFile(firstWithSameB(rank));
            try {
                Files.createLink(bFile(rank), original);
            } catch (UnsupportedOperationException | FileSystemException e) {
                AtomicFile.write(
                        bFile(rank),
                        channel -> Files.copy(original, Channels.newOutputStream(channel)));
            }
            return;
        }
        long totalCols = spec.transposeB() ? spec.k() : spec.n();
        Matrix b = generated(spec, B_STREAM, spec.bType(), spec.b(rank), totalCols, arena);
        Files.deleteIfExists(bFile(rank));
        MatrixFiles.write(bFile(rank).toString(), b);
    }

    private void writeGolden(Arena arena, Progress progress) throws IOException {
        long rows = spec.m() * spec.groups();
        Matrix golden = Matrix.allocate(arena, DType.FP32, rows, spec.n());
        Operands operands = open(arena);
        // Replicated B: one product gives all columns; sharded: one per rank's columns.
        List<List<Integer>> parts =
                spec.replicaGroups().groups().stream()
                        .map(group -> spec.columnSharded() ? group : List.of(group.getFirst()))
                        .toList();
        progress.begin(
                "computing golden in float64",
                spec.m() * parts.stream().mapToInt(List::size).sum());
        long done = 0;
        for (int group = 0; group < spec.groups(); group++) {
            Matrix a = Operands.gatheredA(operands, spec, spec.rankOf(group, 0), arena);
            for (int rank : parts.get(group)) {
                long before = done;
                Matrix part64 =
                        new Float64Oracle(
                                        a,
                                        Operands.wholeB(operands, spec, rank, arena),
                                        spec.transposeB())
                                .golden(
                                        0,
                                        spec.m(),
                                        arena,
                                        rowsDone -> progress.advance(before + rowsDone));
                golden.block(group * spec.m(), spec.m(), spec.firstCol(rank), spec.cols(rank))
                        .copyFrom(part64);
                done += spec.m();
            }
        }
        progress.end();
        MatrixFiles.write(golden().toString(), golden);
    }

    /** The inputs, which are kept as long as the arena. */
    public Operands open(Arena arena) {
        // Found once: what was read stays as it is, whatever happens to its file.
        Map<Path, Piece> found = new ConcurrentHashMap<>();
        return new FileOperands(
                rank ->
                        found.computeIfAbsent(
                                shardFile(rank), file -> piece(file, spec.aType(), spec.a(rank))),
                rank ->
                        found.computeIfAbsent(
                                bFile(firstWithSameB(rank)),
                                file -> piece(file, spec.bType(), spec.b(rank))),
                arena);
    }

    private int firstWithSameB(int rank) {
        if (spec.sitsOut(rank)) {
            return rank;
        }
        Stream<List<Integer>> groups = spec.replicaGroups().groups().stream();
        if (!spec.columnSharded() && spec.gathers()) {
            return groups.mapToInt(Collections::min).min().orElseThrow();
        }
        int members = spec.members(rank).size();
        int member = spec.memberOf(rank);
        return groups.filter(group -> group.size() == members)
                .mapToInt(group -> group.get(member))
                .min()
                .orElseThrow();
    }

    private static Piece piece(Path file, DType type, Block part) {
        return Piece.whole(locate(file, type, part.rows(), part.cols()));
    }

    private static Located locate(Path file, DType type, long rows, long cols) {
        try {
            return MatrixFiles.locate(file.toString(), type, rows, cols);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + file + ": " + e.getMessage(), e);
        }
    }

    public static Matrix read(Path file, DType type, long rows, long cols, Arena arena) {
        try {
            return locate(file, type, rows, cols).read(arena);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + file + ": " + e.getMessage(), e);
        }
    }
}
