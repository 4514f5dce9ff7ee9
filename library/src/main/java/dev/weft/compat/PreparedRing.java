package dev.weft.compat;

import dev.weft.op.AllGatherMatmul;
import dev.weft.op.Timeline;
import dev.weft.plan.RankPlan;

/** A ring through two buffers, prepared once and called many times. */
abstract class PreparedRing implements AutoCloseable {

    final AllGatherMatmul operator;

    PreparedRing(AllGatherMatmul operator) {
        this.operator = operator;
    }

    /** From the latest call's start until this rank's permutes and products were done. */
    public long elapsedNs() {
        return operator.lastResult().elapsedNs();
    }

    /** What the latest call did on this rank, span by span. */
    public Timeline timeline() {
        return operator.lastResult().timeline();
    }

    /** The steps as data: permutes and the order of products. */
    public RankPlan plan() {
        return operator.plan();
    }

    /** Bytes that this rank keeps where peers can reach them. */
    public long reachableBytes() {
        return operator.reachableBytes();
    }

    @Override
    public void close() {
        operator.close();
    }
}
