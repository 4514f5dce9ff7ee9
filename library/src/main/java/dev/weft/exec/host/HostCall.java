package dev.weft.exec.host;

import dev.weft.fabric.transport.Transport;
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

    /** The number of the call, from 1; wraps after 2^32 calls, which comparisons allow for. */
    int number;

    View view;

    /** When the caller began, by {@link System#nanoTime()}. */
    long startNs;

    /** A of the call: the caller's matrix, or its place in memory. */
    Matrix a;

    /** When everything had come that products waited for; 0 if they waited for nothing. */
    long gatheredNs;

    HostCall(Transport fabric, StepMemory memory, RankSteps steps, RowNames names) {
        this.fabric = fabric;
        this.memory = memory;
        this.steps = steps;
        this.names = names;
    }

    int rank() {
        return fabric.rank();
    }

    /** A buffer of the call. */
    Matrix matrix(int rank, int buffer) {
        return rank == fabric.rank() && buffer == 0 ? a : memory.matrix(rank, buffer, number);
    }

    boolean hasReached(Need need) {
        return fabric.reached(
                memory.region(), need.home(), need.at(), need.value(number), need.what());
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
        fabric.await(memory.region(), need.home(), need.at(), need.value(number), need.what());
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
