package dev.weft.cuda.exec.sum;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.DeviceRun;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.plan.Shards;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.List;

/** Products that are summed over ranks, whichever way sums take. */
public abstract sealed class SumRun implements DeviceRun permits HostSums, LinkedSums {

    final Factors factors;
    final Finish finish;

    /** What is closed with this. */
    final List<AutoCloseable> owned = new ArrayList<>();

    /** Of all rows. */
    final List<DeviceMatrix> results = new ArrayList<>();

    final int rank;
    final BufferRows rows;

    /** Of the next calls. */
    private long resultRows;

    /**
     * What a rank multiplies; lists are by product.
     *
     * @param kernels that write sums
     * @param input A, by parity of the call
     * @param bs this rank's rows of the Bs
     * @param columns N
     */
    public record Factors(
            List<GatedKernel> kernels,
            List<DeviceMatrix> input,
            List<DeviceMatrix> bs,
            List<Boolean> transposed,
            List<Long> columns) {}

    /**
     * How sums become results.
     *
     * @param adding adds parts and rounds, no more
     * @param epilogue null if nothing else is to be done
     * @param joins whether the epilogue makes one result of two products
     * @param type of the results
     * @param rows of the results
     * @param all whether results have all rows, or those of this rank
     */
    public record Finish(
            DeviceEpilogue adding,
            DeviceEpilogue epilogue,
            boolean joins,
            DType type,
            long rows,
            boolean all) {

        /** The columns of a result of {@code n} elements in a row. */
        long cols(long n) {
            return epilogue == null ? n : epilogue.resultCols(n);
        }

        /** What makes results of sums. */
        DeviceEpilogue last() {
            return epilogue == null ? adding : epilogue;
        }
    }

    SumRun(int rank, List<StepPlan> plans, Shards shards, Factors factors, Finish finish) {
        this.rank = rank;
        this.rows = new BufferRows(plans, shards);
        this.factors = factors;
        this.finish = finish;
        this.resultRows = finish.rows();
    }

    /** How many results there are. */
    final int resultCount() {
        return finish.joins() ? 1 : factors.bs().size();
    }

    @Override
    public final DeviceMatrix input(int parity, Shards shards) {
        return factors.input().get(parity).rows(0, shards.totalRows());
    }

    @Override
    public final void prepare(Shards shards) {
        finish.last().begin(finish.all() ? shards.totalRows() : shards.rows(rank));
    }

    @Override
    public final void setRows(Shards shards, GpuStream stream) {
        if (rows.set(shards)) {
            resultRows = finish.all() ? shards.totalRows() : shards.rows(rank);
            rowsAreSet(shards, stream);
        }
    }

    /** The next calls have the rows that are set. */
    abstract void rowsAreSet(Shards shards, GpuStream stream);

    @Override
    public final boolean sharesResults() {
        return false;
    }

    /** Sums that peers add have one place. */
    @Override
    public final boolean isReadAfter(View view) {
        return true;
    }

    /** The result number {@code index}, of this rank's rows or of all. */
    @Override
    public DeviceMatrix product(int index) {
        DeviceMatrix all = results.get(index);
        return all.rows() == resultRows ? all : all.rows(0, resultRows);
    }
}
