package dev.weft.cli.data;

import dev.weft.cli.console.RunFailedException;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The whole C in one file, assembled from each rank's part. */
public final class WholeProduct {

    private WholeProduct() {}

    /**
     * Writes the Cs of all groups, one below the other.
     *
     * @param epilogue its steps, which may join columns; null if there are none
     * @param file as {@link MatrixFiles} names it
     * @return its shape and type
     */
    public static String write(DataFolder folder, String epilogue, String file) throws IOException {
        ProblemSpec spec = folder.spec();
        List<List<Integer>> groups = spec.replicaGroups().groups();
        try (Arena arena = Arena.ofConfined()) {
            // Swiglu makes one column of two, on every rank alike.
            long joined = spec.n() / EpilogueData.columnsJoined(epilogue);
            Matrix whole = Matrix.allocate(arena, spec.outType(), groups.size() * spec.m(), joined);
            for (int group = 0; group < groups.size(); group++) {
                // Ranks with the same part of C have the same bits.
                boolean parts = spec.columnSharded() || !spec.hasAllRowsOfC();
                List<Integer> ranks = groups.get(group);
                for (int rank : parts ? ranks : ranks.subList(0, 1)) {
                    copy(folder, epilogue, rank, whole.rows(group * spec.m(), spec.m()));
                }
            }
            MatrixFiles.write(file, whole);
            return whole.describe();
        }
    }

    private static void copy(DataFolder folder, String epilogue, int rank, Matrix target) {
        ProblemSpec spec = folder.spec();
        Path output = folder.output(rank);
        if (!Files.isRegularFile(output)) {
            throw new RunFailedException(
                    "--c: %s is not here: expected a --data-dir that all hosts share", output);
        }
        long rows = spec.rowsOfC(rank);
        long cols = EpilogueData.cols(epilogue, spec, rank);
        long firstCol = spec.firstCol(rank) / EpilogueData.columnsJoined(epilogue);
        try (Arena arena = Arena.ofShared()) {
            target.block(spec.firstRowOfC(rank), rows, firstCol, cols)
                    .copyFrom(DataFolder.read(output, spec.outType(), rows, cols, arena));
        }
    }
}
