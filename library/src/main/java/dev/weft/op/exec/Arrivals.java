package dev.weft.op.exec;

import dev.weft.fabric.transport.Awaited;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;

/**
 * Where each chunk that arrives at a rank is stored, and which rank raises its flag: an {@link
 * Awaited}, which names both in an error if the chunk does not arrive. Immutable, shared by the
 * rank's workers.
 */
public final class Arrivals {

    /** By source and chunk. */
    private final Awaited[][] awaited;

    /** By source: the slot of its chunks. */
    private final int[] slots;

    public Arrivals(RankPlan plan) {
        awaited = new Awaited[plan.ranks()][];
        slots = new int[plan.ranks()];
        for (int s = 0; s < awaited.length; s++) {
            awaited[s] = new Awaited[plan.chunks().count(s)];
        }
        for (Lane lane : plan.arrivals()) {
            for (Transfer transfer : lane.transfers()) {
                boolean put = transfer.initiator() == Transfer.Initiator.SENDER;
                slots[transfer.source()] = transfer.slot();
                awaited[transfer.source()][transfer.chunk()] =
                        Awaited.chunk(
                                        put ? transfer.from() : plan.rank(),
                                        transfer.source(),
                                        transfer.chunk())
                                .within(1);
            }
        }
    }

    public Awaited of(int source, int chunk) {
        return awaited[source][chunk];
    }

    public int slot(int source) {
        return slots[source];
    }
}
