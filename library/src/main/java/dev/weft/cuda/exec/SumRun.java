package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.fabric.FailureReport;
import dev.weft.op.Operator.View;
import dev.weft.op.Timeline;
import dev.weft.tensor.DType;
import java.util.List;

/**
 * What a call of a product that is summed over ranks does on this rank's GPU, from when A is in its
 * place to the end of the call. Used by the thread that calls the operator.
 */
public interface SumRun extends AutoCloseable {

    /**
     * What a rank multiplies; lists are by product.
     *
     * @param kernels that write sums
     * @param partType of those sums: fp32, or bf16 if they are rounded before they are added
     * @param input A, by parity of the call
     * @param sides B
     * @param columns N
     */
    record Factors(
            List<GatedKernel> kernels,
            DType partType,
            List<DeviceMatrix> input,
            List<DeviceMatrix> sides,
            List<Boolean> transposed,
            List<Long> columns) {}

    /**
     * How sums become results.
     *
     * @param adding adds parts and rounds, no more
     * @param epilogue null if nothing else is to be done
     * @param joins whether the epilogue makes one result of two products
     * @param type of the results
     * @param firstRow the row of C that the results begin with
     * @param rows of the results
     */
    record Finish(
            DeviceEpilogue adding,
            DeviceEpilogue epilogue,
            boolean joins,
            DType type,
            long firstRow,
            long rows) {

        /** What makes results of sums. */
        DeviceEpilogue last() {
            return epilogue == null ? adding : epilogue;
        }
    }

    /**
     * Queues a call, or a part of it, on {@code stream} and on streams that it joins.
     *
     * @param events told where the product ends if nothing moves before
     */
    void run(int call, View view, GpuStream stream, CallEvents events);

    /**
     * What the latest call did, which has ended. Null if only its begin and end are known.
     *
     * @param seenNs when the host saw its end
     */
    Timeline timeline(int call, View view, CallEvents events, long seenNs);

    /** Thread blocks of the product's grid; 0 if this rank multiplies nothing. */
    int blocks();

    /** Copies that a call of this rank issues. */
    int copies();

    /** What was sent in a call that is the latest, for an error; none before it begins. */
    default List<FailureReport.Sent> sent(int call) {
        return List.of();
    }

    /** The result number {@code index}, of this rank's rows or of all. */
    DeviceMatrix product(int index);

    /** Frees all of these. */
    static void closeAll(List<? extends AutoCloseable> parts) {
        for (AutoCloseable part : parts) {
            try {
                part.close();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /** Frees all but what peers may read. */
    @Override
    void close();
}
