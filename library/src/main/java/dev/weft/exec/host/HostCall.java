package dev.weft.exec.host;

import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.util.List;

/**
 * What a rank's workers share: the memory, the compiled steps and the state of the call, which the
 * caller sets before the workers start.
 */
final class HostCall {

    final Transport fabric;
    final StepMemory memory;
    final RankSteps steps;
    final RowNames names;

    /** Where ranks tell each other that they have started a call. */
    final Region starts;

    /** The rows of the call. */
    final CallRows rows;

    /** Which buffers have the rows of all shards, so that gaps between shards would be seen. */
    private final Compact compact;

    /**
     * The number of the call of this plan, from 1; wraps after 2^32 calls, which comparisons allow
     * for.
     */
    int number;

    /** The number of the operator's call, which start words have. */
    int operatorCall;

    View view;

    /** When the caller began, by {@link System#nanoTime()}. */
    long startNs;

    /** A of the call: the caller's matrix, or its place in memory. */
    Matrix a;

    /** When everything had come that products waited for; 0 if they waited for nothing. */
    long gatheredNs;

    /**
     * @param a whether A has the rows of all shards
     * @param aIn the buffer that A is part of; -1 if it has its own memory
     * @param c whether C has the rows of all shards
     * @param gathered the buffer of gathered A if the caller gets it, or if a transport gathers it;
     *     else -1
     */
    record Compact(boolean a, int aIn, boolean c, int gathered) {}

    /** With a plan that is its operator's only one, and always whole. */
    HostCall(Transport fabric, StepMemory memory, RankSteps steps, RowNames names) {
        this(fabric, memory, steps, names, memory.region(), new Compact(false, -1, false, -1));
    }

    HostCall(
            Transport fabric,
            StepMemory memory,
            RankSteps steps,
            RowNames names,
            Region starts,
            Compact compact) {
        this.fabric = fabric;
        this.memory = memory;
        this.steps = steps;
        this.names = names;
        this.starts = starts;
        this.rows = new CallRows(names.chunks().shards());
        this.compact = compact;
    }

    /** How many of these rows of the plan are of the same shard as the first. */
    long ofOneShard(long row, long count) {
        return rows.isWhole() ? count : Math.min(count, rows.endOf(names.source(row)) - row);
    }

    /** How many of these rows of the plan the call has; they are of one shard. */
    long count(long row, long count) {
        if (rows.isWhole()) {
            return count;
        }
        int source = names.source(row);
        return rows.count(source, names.rowOfShard(source, row), count);
    }

    /** Whether the rows of all shards are in a buffer without gaps, if the call has fewer. */
    boolean isCompact(int buffer) {
        return buffer == StepPlan.A
                ? compact.a
                : buffer == StepPlan.C ? compact.c : buffer == compact.gathered;
    }

    /** How far a row of the plan is moved in the memory of a rank's buffer. */
    long shift(int ofRank, int buffer, long row) {
        if (rows.isWhole()) {
            return 0;
        }
        if (buffer == StepPlan.A && compact.aIn >= 0) {
            return rows.shift(ofRank);
        }
        return isCompact(buffer) ? rows.shift(names.source(row)) : 0;
    }

    /** Starts a call of a plan that is its operator's only one. */
    void begin(int call) {
        number = call;
        operatorCall = call;
    }

    int rank() {
        return fabric.rank();
    }

    /** A buffer of the call. */
    Matrix matrix(int rank, int buffer) {
        boolean isA = buffer == StepPlan.A;
        return isA && rank == fabric.rank()
                ? a
                : memory.matrix(rank, isA && compact.aIn >= 0 ? compact.aIn : buffer, number);
    }

    /** How far a row of the plan is moved in {@link #matrix}. */
    long shiftInMatrix(int ofRank, int buffer, long row) {
        if (buffer != StepPlan.A || compact.aIn < 0) {
            return shift(ofRank, buffer, row);
        }
        return ofRank == fabric.rank() ? 0 : rows.shards().firstRow(ofRank);
    }

    boolean hasReached(Need need) {
        boolean start = need.at() == StepMemory.START_AT;
        return fabric.reached(
                start ? starts : memory.region(),
                need.home(),
                need.at(),
                need.value(start ? operatorCall : number),
                need.what());
    }

    boolean haveReached(List<Need> needs) {
        for (int i = 0; i < needs.size(); i++) {
            if (!hasReached(needs.get(i))) {
                return false;
            }
        }
        return true;
    }

    void await(Need need) {
        boolean start = need.at() == StepMemory.START_AT;
        fabric.await(
                start ? starts : memory.region(),
                need.home(),
                need.at(),
                need.value(start ? operatorCall : number),
                need.what());
    }

    /** Waits for all of them, and logs how long that took if it was not at once. */
    void await(List<Need> needs, SpanLog log, int source, long firstRow, long rows) {
        long start = 0;
        int writer = -1;
        for (int i = 0; i < needs.size(); i++) {
            Need need = needs.get(i);
            if (!hasReached(need)) {
                start = start == 0 ? System.nanoTime() : start;
                writer = writer < 0 ? need.what().writer() : writer;
                await(need);
            }
        }
        if (start != 0) {
            log.add(Timeline.Kind.WAIT, source, writer, firstRow, rows, start);
        }
    }

    void end(Done done) {
        done.raise(fabric, memory, number);
    }
}
