package dev.weft.exec.host;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.memory.Slots;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Chunks;
import dev.weft.plan.Reduction;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.util.List;
import java.util.stream.Stream;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;

/**
 * Sums that go from rank to rank and back: a lane that finds a chunk multiplied sends what the
 * worker has written, and who sees it arrive sees it all. One actor is the workers of both ranks
 * and the other is their lanes, so that two cores are enough and every signal passes from one to
 * the other. Both make their calls in the same order, so that one region serves all.
 */
@JCStressTest
@Outcome(id = "0", expect = ACCEPTABLE, desc = "All sums were of their own call.")
@Outcome(expect = FORBIDDEN, desc = "A signal without the sums that it announces.")
@State
public class SumFlagsStress {

    private static final int CALLS = 4;

    /** The buffers of a chain: sums so far, and whole sums. */
    private static final int SUMS = StepPlan.C + 1;

    private static final int WHOLE = StepPlan.C + 2;
    private static final List<Rank> RANKS = Slots.onBothRanks(Rank::of);

    /** Each is one actor's. */
    private static int multipliedCalls;

    private static int sentCalls;

    @Actor
    public void workers(I_Result r) {
        for (int i = 0; i < CALLS; i++) {
            int call = ++multipliedCalls;
            // Few enough bits to be a float without loss.
            float sum = call & 0xFFFFF;
            Rank first = RANKS.get(0);
            Rank last = RANKS.get(1);
            first.sums(SUMS, call).set(0, 0, sum);
            first.multiplied(call);
            Matrix sums = last.arrived(SUMS, call);
            r.r1 += sums.get(0, 0) == sum ? 0 : 1;
            sums.set(0, 0, -sum);
            last.multiplied(call);
            r.r1 += first.arrived(WHOLE, call).get(0, 0) == -sum ? 0 : 1;
        }
    }

    @Actor
    public void lanes() {
        for (int i = 0; i < CALLS; i++) {
            int call = ++sentCalls;
            RANKS.forEach(rank -> rank.send(call));
        }
    }

    /** Two ranks with a part of K each, and one row of one element, which both get. */
    private record Rank(
            Transport fabric,
            StepMemory memory,
            HostCall call,
            Done multiplied,
            Need arrival,
            List<MoverWorker> lanes) {

        static Rank of(Transport fabric) {
            Chunks chunks = Chunks.byRows(Shards.of(1, 0), 1, 1, 1);
            List<StepPlan> plans =
                    Reduction.CHAIN.plans(
                            new ReductionRequest(
                                    chunks, Shards.of(1, 1), true, Reduction.Order.WHOLE));
            StepPlan plan = plans.get(fabric.rank());
            StepMemory memory = new StepMemory(fabric, plan, DType.FP32, null, null, null);
            RowNames names = new RowNames(chunks);
            RankSteps steps = new RankSteps(fabric, plan, memory, names, false, true);
            HostCall call = new HostCall(fabric, memory, steps, names);
            call.view = View.PIPELINED;
            Step multiply =
                    steps(plan).filter(s -> s instanceof Step.Multiply).findFirst().orElseThrow();
            return new Rank(
                    fabric,
                    memory,
                    call,
                    steps.done(multiply),
                    steps.arrivals().iterator().next(),
                    steps.lanes().stream().map(lane -> new MoverWorker(lane, call, null)).toList());
        }

        private static Stream<Step> steps(StepPlan plan) {
            return plan.workers().stream().flatMap(worker -> worker.steps().stream());
        }

        Matrix sums(int buffer, int number) {
            return memory.matrix(fabric.rank(), buffer, number);
        }

        void multiplied(int number) {
            multiplied.raise(fabric, memory, number);
        }

        /** What has come from the other rank, of which there is one chunk. */
        Matrix arrived(int buffer, int number) {
            fabric.await(
                    memory.region(),
                    arrival.home(),
                    arrival.at(),
                    arrival.value(number),
                    arrival.what());
            return sums(buffer, number);
        }

        void send(int number) {
            call.begin(number);
            lanes.forEach(MoverWorker::run);
        }
    }
}
