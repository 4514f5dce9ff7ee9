package dev.weft.cuda.exec.sum;

import dev.weft.cuda.exec.DeviceSteps;
import dev.weft.cuda.kernel.RowPlaces;
import dev.weft.exec.host.CallRows;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * Where rows of sums lie in the buffers of a plan, in a call that may have fewer rows than the plan
 * was written for. A buffer whose rows follow each other as in C has no gaps between shards. In one
 * that uses the same rows of C several times, each part begins where it always does. All ranks see
 * the same, since they have the same plans. One thread at a time.
 */
final class BufferRows {

    /** Of a buffer that nobody uses. */
    private static final long NONE = -2;

    private final CallRows rows;

    /** By rank and buffer: the row of C that is its first, or {@link RowPlaces#FIXED}. */
    private final long[][] first;

    BufferRows(List<StepPlan> plans, Shards shards) {
        this.rows = new CallRows(shards);
        this.first = new long[plans.size()][];
        for (StepPlan plan : plans) {
            first[plan.rank()] = new long[plan.buffers().size()];
            Arrays.fill(first[plan.rank()], NONE);
        }
        plans.stream().flatMap(DeviceSteps::of).forEach(this::add);
    }

    private void add(Step step) {
        if (step instanceof Step.Copy copy) {
            add(copy.firstRow(), Stream.of(copy.from(), copy.to()));
        } else if (step instanceof Step.Multiply multiply) {
            add(multiply.firstRow(), Stream.of(multiply.into()));
        } else if (step instanceof Step.Add sum) {
            add(sum.firstRow(), Stream.concat(sum.addends().stream(), Stream.of(sum.into())));
        }
    }

    private void add(long row, Stream<Part> parts) {
        parts.forEach(
                part -> {
                    long[] ofRank = first[part.rank()];
                    long start = row - part.firstRow();
                    long known = ofRank[part.buffer()];
                    boolean alike = known == NONE || known == start;
                    ofRank[part.buffer()] = alike && start >= 0 ? start : RowPlaces.FIXED;
                });
    }

    /** Whether these are other rows than before. */
    boolean set(Shards shards) {
        return rows.set(shards);
    }

    /** Another number for other rows. */
    int version() {
        return rows.version();
    }

    boolean isWhole() {
        return rows.isWhole();
    }

    /** Where a row of C, or the end of some, lies among the rows of the call. */
    long at(long row) {
        return rows.at(row);
    }

    /** How many of some rows of C the call has. */
    long count(long row, long count) {
        return rows.at(row + count) - rows.at(row);
    }

    /** The row of C that is the first of a buffer, or {@link RowPlaces#FIXED}. */
    long firstOf(int rank, int buffer) {
        return Math.max(RowPlaces.FIXED, first[rank][buffer]);
    }

    /** The first row of a part, which begins with this row of C. */
    long in(Part part, long row) {
        long start = firstOf(part.rank(), part.buffer());
        if (start >= 0) {
            return at(row) - at(start);
        }
        if (!isWhole() && rows.isOfSeveralShards(row, part.rows())) {
            throw new UnsupportedOperationException(
                    "rows of several shards at once, in a buffer that has rows several times, in a"
                            + " call of fewer rows: expected an algorithm that takes each by itself");
        }
        return part.firstRow();
    }
}
