package dev.weft.cuda.op;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.DeviceLayout;
import dev.weft.cuda.exec.DeviceOperands;
import dev.weft.cuda.exec.HostPeers;
import dev.weft.cuda.exec.Peers;
import dev.weft.cuda.exec.sum.HostPeerSums;
import dev.weft.cuda.exec.sum.HostSums;
import dev.weft.cuda.exec.sum.LinkedSums;
import dev.weft.cuda.exec.sum.StagedSums;
import dev.weft.cuda.exec.sum.SumCopyList;
import dev.weft.cuda.exec.sum.SumExchange;
import dev.weft.cuda.exec.sum.SumRun;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.Origin;
import dev.weft.exec.host.HostLanes;
import dev.weft.op.exec.EpilogueSteps;
import dev.weft.plan.Chunks;
import dev.weft.plan.Plan;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/**
 * Makes one operator whose products are summed over ranks, for either way in which ranks reach each
 * other. Used by the thread that prepares the operator. Collective if there is a fabric.
 *
 * @param linked whether ranks read each other's GPU memory
 * @param kernels that write sums, by product
 * @param results kernels that write the results' type, by product, if ranks are linked
 * @param plan what all ranks do
 * @param kParts how K is spread over the ranks
 * @param all whether results have all rows of C, or those of this rank
 */
record SumAssembly(
        CudaGroup group,
        boolean linked,
        List<GatedKernel> kernels,
        List<GatedKernel> results,
        Plan plan,
        Shards kParts,
        DType aType,
        DType outType,
        List<Long> columns,
        boolean all,
        EpilogueSteps epilogue) {

    /** Whether nothing moves before all is multiplied. */
    private boolean productFirst() {
        return plan.algorithm() == Reduction.SEQUENTIAL;
    }

    private Chunks chunks() {
        return plan.chunks();
    }

    CudaMatmulReduce operator() {
        return CudaGroup.assemble(this::operator);
    }

    private CudaMatmulReduce operator(Deque<AutoCloseable> made) {
        SumRun.Finish finish = finish(made);
        DeviceOperands bs = new DeviceOperands();
        made.push(bs);
        SumCopyList list =
                linked
                        ? null
                        : SumCopyList.of(
                                plan.steps(),
                                group.rank,
                                chunks(),
                                columns,
                                kernels.getFirst().shape(),
                                group.fabric != null);
        CudaBuffers buffers;
        try (GpuStream stream = GpuStream.create()) {
            for (DeviceOperands.B b : group.bs) {
                // Peers map whole allocations, with rows of this pitch.
                bs.addB(b, null, linked, stream);
            }
            long k = kParts.rows(group.rank);
            buffers =
                    new CudaBuffers(
                            new DeviceLayout(chunks().shards(), aType, k, DeviceLayout.Place.ROWS),
                            group.rank,
                            list == null ? 0 : list.origins().size() + list.counters(),
                            0,
                            stream);
        }
        made.push(buffers);
        SumRun.Factors factors =
                new SumRun.Factors(
                        kernels,
                        List.of(buffers.gathered(0), buffers.gathered(1)),
                        bs.bs(),
                        group.bs.stream().map(DeviceOperands.B::transposed).toList(),
                        columns);
        return linked
                ? linked(made, factors, finish, buffers)
                : throughHostMemory(made, list, factors, finish, buffers);
    }

    private SumRun.Finish finish(Deque<AutoCloseable> made) {
        Shards shards = chunks().shards();
        long resultRows = all ? shards.totalRows() : shards.rows(group.rank);
        DeviceEpilogue adding = new DeviceEpilogue(group.gpu, EpilogueSteps.NONE, resultRows);
        made.push(adding);
        DeviceEpilogue last = null;
        if (!epilogue.isNone()) {
            last = new DeviceEpilogue(group.gpu, epilogue, resultRows);
            made.push(last);
        }
        return new SumRun.Finish(adding, last, epilogue.joins(), outType, resultRows, all);
    }

    private CudaMatmulReduce throughHostMemory(
            Deque<AutoCloseable> made,
            SumCopyList list,
            SumRun.Factors factors,
            SumRun.Finish finish,
            CudaBuffers buffers) {
        long[] own = {buffers.address(0), buffers.address(1)};
        List<AutoCloseable> memory = memory(made, buffers);
        Peers peers;
        SumExchange exchange;
        long longestWaitNs = group.deadlineNs();
        if (group.fabric == null) {
            peers = new HostPeers(group.rank, DType.FP32, 0, 0, own, buffers.flags());
            made.push(peers);
            exchange = new HostPeerSums(list, columns, Reduction::slotOf);
        } else {
            HostLanes lanes = StagedSums.lanes(group.fabric, plan.steps(), chunks());
            peers =
                    new HostPeers(
                            group.fabric, lanes.region(), lanes.buffersAt(), own, buffers.flags());
            made.push(peers);
            long productNs = CallEvents.productNs(work());
            exchange = new StagedSums(group.fabric, lanes, list, columns, productNs);
            longestWaitNs = HostPeers.longestWaitNs(longestWaitNs);
        }
        HostSums sums =
                new HostSums(
                        group.rank,
                        plan.steps(),
                        chunks(),
                        productFirst(),
                        list,
                        exchange,
                        factors,
                        buffers,
                        finish,
                        longestWaitNs);
        made.push(sums);
        return operator(made, list.origins(), call -> sums.reached(), buffers, peers, sums, memory);
    }

    private CudaMatmulReduce linked(
            Deque<AutoCloseable> made,
            SumRun.Factors factors,
            SumRun.Finish finish,
            CudaBuffers buffers) {
        LinkedSums sums =
                new LinkedSums(
                        group.fabric,
                        group.gpu,
                        plan.steps(),
                        chunks().shards(),
                        kParts,
                        productFirst(),
                        factors,
                        results,
                        finish,
                        buffers,
                        group.deadlineNs());
        List<AutoCloseable> memory = memory(made, buffers);
        memory.addAll(sums.memory());
        made.addAll(sums.memory());
        made.push(sums.peers());
        made.push(sums);
        return operator(made, List.of(), call -> Map.of(), buffers, sums.peers(), sums, memory);
    }

    /** What the operator closes last, of what has been made so far; the buffers it knows. */
    private static List<AutoCloseable> memory(Deque<AutoCloseable> made, CudaBuffers buffers) {
        List<AutoCloseable> memory = new ArrayList<>(made);
        memory.remove(buffers);
        return memory;
    }

    private CudaMatmulReduce operator(
            Deque<AutoCloseable> made,
            List<Origin> origins,
            IntFunction<Map<Integer, Integer>> counters,
            CudaBuffers buffers,
            Peers peers,
            SumRun sums,
            List<AutoCloseable> memory) {
        int[] due = IntStream.range(0, origins.size()).toArray();
        CallEvents events = group.events(origins, due, peers, buffers, counters, work());
        made.push(events);
        // Nobody reads what a peer has before all are there.
        group.barrier();
        CudaMatmulReduce operator = new CudaMatmulReduce(group, plan, buffers, peers, events, sums);
        operator.adopt(memory, List.of());
        return operator;
    }

    /** Multiply-adds of a call, twice. */
    private double work() {
        long n = columns.stream().mapToLong(Long::longValue).sum();
        return 2.0 * chunks().shards().totalRows() * kParts.totalRows() * n;
    }
}
