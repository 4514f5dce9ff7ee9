package dev.weft.cuda.op;

import dev.weft.cuda.Gpu;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.HostPeerSums;
import dev.weft.cuda.exec.HostPeers;
import dev.weft.cuda.exec.HostSums;
import dev.weft.cuda.exec.LaneCounters;
import dev.weft.cuda.exec.LinkedSums;
import dev.weft.cuda.exec.Peers;
import dev.weft.cuda.exec.StagedPeers;
import dev.weft.cuda.exec.StagedSums;
import dev.weft.cuda.exec.SumCopyList;
import dev.weft.cuda.exec.SumExchange;
import dev.weft.cuda.exec.SumRun;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.Origin;
import dev.weft.exec.host.HostLanes;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What a {@link CudaMatmulReduce} is made of, for either way in which ranks reach each other. Used
 * by the thread that prepares the operator.
 *
 * @param fabric null if the peers are host memory
 * @param steps what all ranks do
 * @param inner how K is spread over the ranks
 * @param made what is to be closed if preparing fails, the latest first
 */
record CudaMatmulReduceParts(
        Transport fabric,
        Gpu gpu,
        int rank,
        List<RankPlan> plans,
        List<StepPlan> steps,
        Shards inner,
        SumRun.Factors factors,
        SumRun.Finish finish,
        CudaBuffers buffers,
        long deadlineNs,
        Deque<AutoCloseable> made) {

    private RankPlan plan() {
        return plans.get(rank);
    }

    /** Sums go through host memory. Collective if there is a fabric. */
    CudaMatmulReduce throughHostMemory(SumCopyList list) {
        long[] own = {buffers.address(0), buffers.address(1)};
        List<AutoCloseable> memory = memory();
        Peers peers;
        SumExchange exchange;
        long longestWaitNs = deadlineNs;
        if (fabric == null) {
            peers = new HostPeers(rank, DType.FP32, 0, 0, own, buffers.flags());
            made.push(peers);
            exchange = new HostPeerSums(list, factors.columns(), Reduction::slotOf);
        } else {
            HostLanes lanes = StagedSums.lanes(fabric, steps, plan().chunks());
            peers =
                    new StagedPeers(
                            fabric, lanes.region(), lanes.buffersAt(), own, buffers.flags());
            made.push(peers);
            long productNs = CallEvents.productNs(work());
            exchange = new StagedSums(fabric, lanes, list, factors.columns(), productNs);
            longestWaitNs = StagedPeers.longestWaitNs(deadlineNs);
        }
        HostSums sums =
                new HostSums(
                        rank,
                        plan().chunks(),
                        plan().pacing().gatherFirst(),
                        list,
                        exchange,
                        factors,
                        buffers,
                        finish,
                        longestWaitNs);
        made.push(sums);
        return operator(list.origins(), sums.awaited(), peers, sums, memory);
    }

    /**
     * Ranks read each other's GPU memory. Collective.
     *
     * @param last kernels that write the results' type, by product
     */
    CudaMatmulReduce linked(List<GatedKernel> last) {
        LinkedSums sums =
                new LinkedSums(
                        fabric,
                        gpu,
                        steps,
                        plan().chunks().shards(),
                        inner,
                        plan().pacing().gatherFirst(),
                        factors,
                        last,
                        finish,
                        buffers,
                        deadlineNs);
        List<AutoCloseable> memory = memory();
        memory.addAll(sums.memory());
        made.addAll(sums.memory());
        made.push(sums.peers());
        made.push(sums);
        return operator(List.of(), null, sums.peers(), sums, memory);
    }

    /** What the operator closes last, of what has been made so far; the buffers it knows. */
    private List<AutoCloseable> memory() {
        List<AutoCloseable> memory = new ArrayList<>(made);
        memory.remove(buffers);
        return memory;
    }

    private CudaMatmulReduce operator(
            List<Origin> origins,
            LaneCounters counters,
            Peers peers,
            SumRun sums,
            List<AutoCloseable> memory) {
        CallEvents events =
                new CallEvents(
                        rank,
                        origins,
                        IntStream.range(0, origins.size()).toArray(),
                        peers::worldRank,
                        buffers,
                        counters,
                        fabric == null ? () -> {} : fabric::worked,
                        fabric == null ? () -> {} : fabric::checkPeers,
                        deadlineNs,
                        work());
        made.push(events);
        if (fabric != null) {
            // Nobody reads what a peer has before all are there.
            fabric.barrier();
        }
        CudaMatmulReduce operator =
                new CudaMatmulReduce(
                        gpu, fabric, plans, plan(), steps, buffers, peers, events, sums);
        operator.adopt(memory, List.of());
        return operator;
    }

    /** Multiply-adds of a call, twice. */
    private double work() {
        long n = factors.columns().stream().mapToLong(Long::longValue).sum();
        return 2.0 * plan().chunks().shards().totalRows() * inner.totalRows() * n;
    }
}
