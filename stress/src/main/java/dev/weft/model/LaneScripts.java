package dev.weft.model;

import dev.weft.model.Memory.Rows;
import dev.weft.op.Operator.View;
import dev.weft.plan.Chunk;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.RankPlan.Transfer.Initiator;

/** What {@code LaneWorker} does in one call of one rank. */
final class LaneScripts {

    private final Call call;
    private final Mutant mutant;
    private final WordTable words;
    private final Memory memory;

    LaneScripts(Call call) {
        this.call = call;
        this.mutant = call.protocol().mutant();
        this.words = call.protocol().words();
        this.memory = call.protocol().memory();
    }

    void write(Script script, Lane lane) {
        if (call.view() == View.COMPUTE_ONLY) {
            return;
        }
        int[] delivered = new int[call.plan().ranks()];
        for (Transfer transfer : lane.transfers()) {
            awaitNeed(script, transfer);
            awaitCredit(script, transfer);
            delivered[transfer.to()]++;
            if (mutant == Mutant.FLAG_FIRST) {
                script.raise(words.flag(transfer.to(), transfer.tag()), call.number());
            }
            if (mutant == Mutant.COUNTER_FIRST) {
                count(script, lane, transfer, delivered[transfer.to()]);
            }
            String what = describe(transfer);
            script.copy("copy " + what, "copied " + what, from(transfer), to(transfer));
            if (mutant != Mutant.FLAG_FIRST) {
                script.raise(words.flag(transfer.to(), transfer.tag()), call.number());
            }
            if (mutant != Mutant.COUNTER_FIRST) {
                count(script, lane, transfer, delivered[transfer.to()]);
            }
            if (call.pingPong() && transfer.isForward()) {
                script.use(words.release(call.rank()), call.releaseIndex(transfer.source()));
            }
        }
    }

    private void awaitNeed(Script script, Transfer transfer) {
        if (mutant == Mutant.NEED_IGNORED) {
            return;
        }
        if (transfer.isForward()) {
            script.await(words.flag(transfer.from(), transfer.tag()), call.number());
        } else if (transfer.initiator() == Initiator.RECEIVER) {
            script.await(words.start(transfer.from()), call.number());
        }
    }

    private void awaitCredit(Script script, Transfer transfer) {
        if (call.pingPong() && mutant != Mutant.CREDIT_IGNORED) {
            int perCall = call.plan().ranks() - 1;
            int released = (call.number() - 1) * perCall + transfer.credit();
            int missing = mutant == Mutant.CREDIT_OFF_BY_ONE ? 1 : 0;
            script.await(words.release(transfer.to()), released - missing);
        }
    }

    private void count(Script script, Lane lane, Transfer transfer, int place) {
        if (call.protocol().setting().summaries()) {
            int to = transfer.to();
            int perCall = (int) lane.transfers().stream().filter(t -> t.to() == to).count();
            int value = (call.number() - 1) * perCall + place;
            script.raise(words.counter(to, call.rank(), lane.index()), value);
        }
    }

    private static String describe(Transfer transfer) {
        return "chunk "
                + transfer.chunk()
                + " of rank "
                + transfer.source()
                + " from rank "
                + transfer.from()
                + " to rank "
                + transfer.to();
    }

    private Part from(Transfer transfer) {
        int source = transfer.source();
        int index = call.index();
        if (!transfer.isForward()) {
            return memory.shard(source, call.slot(), index, rows(transfer));
        }
        int slot = call.pingPong() ? buffer(call.plan(), source) : call.slot();
        return memory.landing(transfer.from(), slot, source, index, rows(transfer));
    }

    private Part to(Transfer transfer) {
        int slot = call.pingPong() ? transfer.slot() : call.slot();
        int source = transfer.source();
        return memory.landing(transfer.to(), slot, source, call.index(), rows(transfer));
    }

    private Rows rows(Transfer transfer) {
        Chunk chunk = call.plan().chunks().chunk(transfer.source(), transfer.chunk());
        return new Rows(chunk.firstRow(), chunk.rows(), chunk.firstCol(), chunk.cols());
    }

    /** The ping-pong buffer that a shard lands in at the plan's rank. */
    static int buffer(RankPlan plan, int source) {
        return plan.arrivals().stream()
                .flatMap(lane -> lane.transfers().stream())
                .filter(transfer -> transfer.source() == source)
                .mapToInt(Transfer::slot)
                .findFirst()
                .orElseThrow();
    }
}
