package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.GatedKernel;
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

    final List<DeviceMatrix> results = new ArrayList<>();

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
     */
    public record Finish(
            DeviceEpilogue adding, DeviceEpilogue epilogue, boolean joins, DType type, long rows) {

        /** What makes results of sums. */
        DeviceEpilogue last() {
            return epilogue == null ? adding : epilogue;
        }
    }

    SumRun(Factors factors, Finish finish) {
        this.factors = factors;
        this.finish = finish;
    }

    /** How many results there are. */
    final int resultCount() {
        return finish.joins() ? 1 : factors.bs().size();
    }

    @Override
    public final DeviceMatrix input(int parity) {
        return factors.input().get(parity);
    }

    @Override
    public final void prepare() {
        finish.last().begin();
    }

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
    public final DeviceMatrix product(int index) {
        return results.get(index);
    }
}
