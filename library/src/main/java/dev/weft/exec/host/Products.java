package dev.weft.exec.host;

import dev.weft.ffi.LargePages;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * What a rank multiplies by, and where results go. Sums of several Bs lie side by side in one
 * buffer.
 */
final class Products {

    private final Gemm gemm;
    private final PackedB[][] bs;
    private final int rank;
    private final List<Product> results;
    private final PreparedEpilogue epilogue;
    private final boolean finishes;
    private final Scaling scaling;
    private final boolean partsAreRows;
    private final HostExecutor.Grouped grouped;
    private final long deepest;
    private final long widest;

    /** By B: where the parts of its columns begin, followed by N. */
    private final long[][] firstCols;

    /** By B: sums of C's rows whose columns several threads multiply; null if there are none. */
    private Matrix[] unfinished;

    /** By copy, buffer and B: its columns of the sums there; null for other buffers. */
    private Matrix[][][] columns;

    /**
     * @param bs by rank and B; empty for ranks whose B this rank does not read
     * @param results one for each B, or for two that are joined
     * @param epilogue what is applied to sums; may have no steps
     * @param scaling the scaling of an A of 8 bits; else null
     * @param grouped how rows are in groups, of which each has a result, or all the same; else null
     */
    Products(
            Gemm gemm,
            PackedB[][] bs,
            int rank,
            List<Product> results,
            PreparedEpilogue epilogue,
            Scaling scaling,
            int parts,
            boolean partsAreRows,
            HostExecutor.Grouped grouped) {
        this.gemm = gemm;
        this.bs = bs;
        this.rank = rank;
        this.results = results;
        this.epilogue = epilogue;
        this.finishes = epilogue.hasSteps();
        this.scaling = scaling;
        this.partsAreRows = partsAreRows;
        this.grouped = grouped;
        this.deepest = all().mapToLong(PackedB::k).max().orElse(0);
        this.widest = all().mapToLong(PackedB::n).max().orElse(0);
        Stream<PackedB> ofColumns =
                grouped != null && grouped.added()
                        ? Stream.of(results.getFirst().b())
                        : Arrays.stream(bs[rank]);
        int columnParts = partsAreRows ? 1 : grouped == null ? parts : grouped.columnParts(parts);
        this.firstCols =
                ofColumns.map(b -> firstCols(b.n(), gemm, columnParts)).toArray(long[][]::new);
    }

    /** Where the parts of N columns begin, followed by N. */
    static long[] firstCols(long n, Gemm gemm, int parts) {
        long quanta = Math.ceilDiv(n, gemm.colQuantum());
        return LongStream.rangeClosed(0, parts)
                .map(part -> Math.min(n, quanta * part / parts * gemm.colQuantum()))
                .toArray();
    }

    /** Looks up where this rank's sums are, and reserves memory for those that C cannot hold. */
    void in(StepMemory memory, StepPlan plan, Arena arena) {
        boolean intoC = plan.multiplications().anyMatch(step -> step.into().buffer() == StepPlan.C);
        if (intoC && grouped == null && epilogue.takesWholeRows() && firstCols[0].length > 2) {
            long rows = plan.buffers().get(StepPlan.C).rows();
            long bytes = Matrix.contiguousBytes(DType.FP32, rows, totalColumns());
            unfinished =
                    columnsOf(
                            Matrix.of(
                                    LargePages.allocate(bytes, arena),
                                    DType.FP32,
                                    rows,
                                    totalColumns()));
        }
        columns = new Matrix[StepMemory.COPIES][plan.buffers().size()][];
        for (int copy = 0; copy < StepMemory.COPIES; copy++) {
            for (int b = 0; b < plan.buffers().size(); b++) {
                if (plan.buffers().get(b).holdsSums()) {
                    columns[copy][b] = columnsOf(memory.matrix(plan.rank(), b, copy));
                }
            }
        }
    }

    /** The columns of each B in a matrix of sums. */
    Matrix[] columnsOf(Matrix sums) {
        Matrix[] views = new Matrix[firstCols.length];
        long first = 0;
        for (int i = 0; i < views.length; i++) {
            long n = firstCols[i][firstCols[i].length - 1];
            views[i] = sums.block(0, sums.rows(), first, n);
            first += n;
        }
        return views;
    }

    Gemm gemm() {
        return gemm;
    }

    /** Whether threads share the rows of a product, not its columns. */
    boolean partsAreRows() {
        return partsAreRows;
    }

    /** How rows are in groups; null if they are not. */
    HostExecutor.Grouped grouped() {
        return grouped;
    }

    /** How many Bs there are whose sums lie side by side. */
    int count() {
        return firstCols.length;
    }

    PackedB b(int rank, int index) {
        return bs[rank][index];
    }

    /** What this rank multiplies the rows of a group by. */
    PackedB ofGroup(int group) {
        return bs[rank][group];
    }

    List<Product> results() {
        return results;
    }

    PreparedEpilogue epilogue() {
        return epilogue;
    }

    /** Whether sums are more than just rounded. */
    boolean finishes() {
        return finishes;
    }

    Scaling scaling() {
        return scaling;
    }

    /**
     * Where products that would go into C go instead, by B: if rows are finished whole and several
     * threads multiply their columns, whoever does the last of them finishes the rows. Otherwise
     * null.
     */
    Matrix[] unfinished() {
        return unfinished;
    }

    /** Into how many parts the columns of each B are cut. */
    int columnParts() {
        return firstCols[0].length - 1;
    }

    long firstCol(int b, int part) {
        return firstCols[b][part];
    }

    /** The columns of one B in a buffer of sums in a call. */
    Matrix columns(int buffer, int b, int call) {
        return columns[StepMemory.copy(call)][buffer][b];
    }

    /** The columns of all Bs together. */
    long totalColumns() {
        return Arrays.stream(firstCols).mapToLong(cols -> cols[cols.length - 1]).sum();
    }

    long deepest() {
        return deepest;
    }

    long widest() {
        return widest;
    }

    private Stream<PackedB> all() {
        return Arrays.stream(bs).flatMap(Arrays::stream);
    }
}
