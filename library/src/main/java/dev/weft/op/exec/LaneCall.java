package dev.weft.op.exec;

import dev.weft.fabric.FailureReport;
import dev.weft.op.Operator.View;
import java.util.List;

/** An operator's latest call, as seen from the words in its host memory. */
public record LaneCall(Workspace workspace, List<LaneWorker> lanes) implements CallReport.Call {

    @Override
    public String operator() {
        return workspace.memory().region().name();
    }

    @Override
    public int number() {
        return workspace.state().call;
    }

    @Override
    public boolean moves() {
        return workspace.state().view != View.COMPUTE_ONLY && number() > 0;
    }

    @Override
    public boolean isStarted(int rank, int number) {
        OperatorMemory memory = workspace.memory();
        return workspace.fabric().reached(memory.region(), rank, OperatorMemory.START_AT, number);
    }

    @Override
    public boolean hasArrived(int source, int chunk) {
        OperatorMemory memory = workspace.memory();
        return workspace
                .fabric()
                .reached(
                        memory.region(),
                        workspace.plan().rank(),
                        memory.flagAt(source, chunk),
                        number(),
                        workspace.arrivals().of(source, chunk));
    }

    @Override
    public List<FailureReport.Sent> sent() {
        return lanes.stream().map(LaneWorker::sent).toList();
    }
}
