package dev.weft.cuda.exec.sum;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.DeviceSteps.RowSum;
import dev.weft.cuda.exec.sum.SumCopyList.Made;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.plan.step.Part;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * What {@link HostSums} makes of sums that have come: rows that are added up to be sent, and rows
 * of results. Used by the thread that calls the operator.
 */
final class SumResults {

    private final SumCopyList list;
    private final SumRun.Finish finish;
    private final BufferRows rows;

    /** By product and buffer of the plan. */
    private final DeviceMatrix[][] sums;

    /** Of all rows. */
    private final List<DeviceMatrix> results;

    private final List<Launched> added = new ArrayList<>();
    private final List<Launched> finished = new ArrayList<>();

    /**
     * Rows that are made once a flag is raised, or at once if it is -1.
     *
     * @param last whether they are rows of a result
     */
    record Launched(RowSum sum, int product, boolean last, DeviceEpilogue.Rows rows, int flag) {}

    /**
     * @param count of results
     * @param results to which it adds them
     * @param owned to which it adds what is to be closed
     */
    SumResults(
            SumCopyList list,
            SumRun.Finish finish,
            BufferRows rows,
            DeviceMatrix[][] sums,
            List<Long> columns,
            int count,
            List<DeviceMatrix> results,
            List<AutoCloseable> owned,
            SumTimeline timeline,
            GpuStream stream) {
        this.list = list;
        this.finish = finish;
        this.rows = rows;
        this.sums = sums;
        this.results = results;
        for (int i = 0; i < count; i++) {
            add(i, columns.get(i), owned, timeline, stream);
        }
    }

    /** Memory for sums or results. */
    static DeviceMatrix matrix(
            DType type, long rows, long cols, List<AutoCloseable> owned, GpuStream stream) {
        DeviceBuffer buffer =
                DeviceBuffer.zeroed(DeviceMatrix.alignedBytes(type, rows, cols), stream);
        owned.add(buffer);
        return DeviceMatrix.in(buffer, type, rows, cols);
    }

    /** The rows of a result: made of sums, or those themselves if nothing is left to do. */
    private void add(
            int i, long n, List<AutoCloseable> owned, SumTimeline timeline, GpuStream stream) {
        if (finish.epilogue() == null && isInPlace(finish.type())) {
            results.add(inPlace(i, finish.rows()));
            return;
        }
        DeviceMatrix result = matrix(finish.type(), finish.rows(), finish.cols(n), owned, stream);
        results.add(result);
        for (Made made : list.added()) {
            for (int p = i; p <= (finish.joins() ? i + 1 : i); p++) {
                RowSum sum = made.rows();
                DeviceEpilogue.Rows by =
                        finish.adding().rows(p, parts(p, sum), List.of(), target(p, sum, false), 0);
                added.add(new Launched(sum, p, false, by, made.flags().get(p)));
                timeline.makes(sum.row(), true, by);
                owned.add(by);
            }
        }
        for (Made made : list.results()) {
            RowSum sum = made.rows();
            DeviceEpilogue.Rows by =
                    finish.last()
                            .rows(
                                    i,
                                    parts(i, sum),
                                    seconds(i, sum, true),
                                    target(i, sum, true),
                                    rows.in(sum.into(), sum.row()));
            int flag = made.flags().get(finish.joins() ? i + 1 : i);
            finished.add(new Launched(sum, i, true, by, flag));
            timeline.makes(sum.row(), false, by);
            owned.add(by);
        }
    }

    /** The rows of a result where they were multiplied. */
    private DeviceMatrix inPlace(int i, long count) {
        RowSum first = list.results().getFirst().rows();
        Part part = first.parts().getFirst();
        return sums[i][part.buffer()].rows(rows.in(part, first.row()), count);
    }

    private List<DeviceMatrix> seconds(int i, RowSum sum, boolean last) {
        return last && finish.joins() ? parts(i + 1, sum) : List.of();
    }

    private DeviceMatrix target(int i, RowSum sum, boolean last) {
        Part into = sum.into();
        DeviceMatrix all = last ? results.get(i) : sums[i][into.buffer()];
        return all.rows(rows.in(into, sum.row()), rows.count(sum.row(), into.rows()));
    }

    /** Whether the sums of a buffer are the result as they are. */
    private boolean isInPlace(DType type) {
        List<RowSum> all = list.results().stream().map(Made::rows).toList();
        return list.late().isEmpty()
                && list.added().isEmpty()
                && !all.isEmpty()
                && all.getFirst().into().firstRow() == 0
                && all.stream().allMatch(rows -> rows.parts().size() == 1)
                && all.stream()
                                .map(
                                        rows -> {
                                            Part part = rows.parts().getFirst();
                                            long shift = part.firstRow() - rows.into().firstRow();
                                            return List.of((long) part.buffer(), shift);
                                        })
                                .distinct()
                                .count()
                        == 1
                && list.type(all.getFirst().parts().getFirst().buffer()) == type;
    }

    private List<DeviceMatrix> parts(int i, RowSum sum) {
        return sum.parts().stream()
                .map(
                        part ->
                                sums[i][part.buffer()].rows(
                                        rows.in(part, sum.row()),
                                        rows.count(sum.row(), part.rows())))
                .toList();
    }

    /** The rows of the next calls are set. */
    void rowsAreSet() {
        for (Launched made : Stream.concat(added.stream(), finished.stream()).toList()) {
            RowSum sum = made.sum();
            int i = made.product();
            made.rows()
                    .set(
                            parts(i, sum),
                            seconds(i, sum, made.last()),
                            target(i, sum, made.last()),
                            made.last() ? rows.in(sum.into(), sum.row()) : 0);
        }
    }

    /** A result that is made in its place begins where its first row has moved to. */
    DeviceMatrix product(int index, DeviceMatrix result) {
        return finished.isEmpty() && result.rows() > 0 ? inPlace(index, result.rows()) : result;
    }

    void forEachAdded(Consumer<Launched> make) {
        added.forEach(make);
    }

    void forEachFinished(Consumer<Launched> make) {
        finished.forEach(make);
    }
}
