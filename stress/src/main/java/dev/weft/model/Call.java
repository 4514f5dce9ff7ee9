package dev.weft.model;

import dev.weft.model.Memory.Rows;
import dev.weft.op.Operator.View;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;

/**
 * One call of one rank.
 *
 * @param index 1 for the first call that is looked at, whatever its number
 */
record Call(Protocol protocol, RankPlan plan, int index) {

    int rank() {
        return plan.rank();
    }

    /** What words hold of the call. */
    int number() {
        return protocol.setting().firstCall() + index - 1;
    }

    View view() {
        return protocol.setting().views().get(index - 1);
    }

    int slot() {
        return protocol.mutant() == Mutant.ONE_SLOT ? 0 : number() & 1;
    }

    boolean pingPong() {
        return plan.storage() == Storage.PING_PONG;
    }

    Rows allRows(int source) {
        return new Rows(0, plan.chunks().shards().rows(source), 0, plan.chunks().cols());
    }

    /** Which of the shards it is that the rank releases, from 0 on. */
    int releaseIndex(int source) {
        return plan.releases().indexOf(source);
    }

    /** By release: what must be done with the shard before it is released. */
    int[] uses() {
        int[] uses = new int[plan.ranks() - 1];
        if (view() == View.COMPUTE_ONLY) {
            return uses;
        }
        for (RowBlock block : plan.consumption()) {
            if (view() != View.COMM_ONLY && block.source() != rank()) {
                uses[releaseIndex(block.source())]++;
            }
        }
        for (Lane lane : plan.lanes()) {
            for (Transfer transfer : lane.transfers()) {
                if (transfer.source() != rank()) {
                    uses[releaseIndex(transfer.source())]++;
                }
            }
        }
        return uses;
    }
}
