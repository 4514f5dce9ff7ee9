package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.BitSet;
import java.util.List;

/**
 * The transfers of plans that sum, by what they deliver. It exists only if every transfer is well
 * formed and no two write to the same place. Immutable once built.
 *
 * @param partial per receiver and tag: the transfer that brings sums to be continued
 * @param whole per receiver and tag: the transfer that brings whole sums
 * @param own per sender and tag: the transfer that brings its sums to a rank that adds them
 * @param adding per receiver and tag: whether it adds others' sums
 * @param handedOn per sender and tag: whether another rank continues its sums or adds them
 */
record SumsIndex(
        Chunks chunks,
        Transfer[] partial,
        Transfer[] whole,
        Transfer[] own,
        BitSet adding,
        BitSet handedOn) {

    /** Reads the lanes of all plans. Throws a {@link PlanException} if a transfer is wrong. */
    static SumsIndex of(List<RankPlan> plans) {
        Chunks cut = plans.getFirst().chunks();
        int count = Math.multiplyExact(plans.size(), cut.total());
        SumsIndex index =
                new SumsIndex(
                        cut,
                        new Transfer[count],
                        new Transfer[count],
                        new Transfer[count],
                        new BitSet(count),
                        new BitSet(count));
        for (RankPlan plan : plans) {
            for (Lane lane : plan.lanes()) {
                lane.transfers().forEach(transfer -> index.add(plan.rank(), transfer));
            }
        }
        return index;
    }

    /** The transfer that brings a rank sums of a chunk to be continued, or null. */
    Transfer partial(int rank, int tag) {
        return partial[key(rank, tag)];
    }

    /** The transfer that brings a rank whole sums of a chunk, or null. */
    Transfer whole(int rank, int tag) {
        return whole[key(rank, tag)];
    }

    /** The transfer that brings the sums of {@code rank} to a rank that adds them, or null. */
    Transfer own(int rank, int tag) {
        return own[key(rank, tag)];
    }

    /** Whether a rank adds others' sums of a chunk. */
    boolean adds(int rank, int tag) {
        return adding.get(key(rank, tag));
    }

    /** Whether {@code rank} sends its sums of a chunk before they are whole. */
    boolean isHandedOn(int rank, int tag) {
        return handedOn.get(key(rank, tag));
    }

    /** A number for a rank and a chunk. */
    int key(int rank, int tag) {
        return rank * chunks.total() + tag;
    }

    private void add(int rank, Transfer transfer) {
        String fault = fault(rank, transfer);
        if (fault != null) {
            throw new PlanException(rank, transfer, fault);
        }
        Transfer[] places =
                switch (transfer.slot()) {
                    case Reduction.PARTIAL -> partial;
                    case Reduction.WHOLE -> whole;
                    default -> own;
                };
        int place = key(places == own ? transfer.from() : transfer.to(), transfer.tag());
        if (places[place] != null) {
            throw new PlanException(
                    transfer.to(),
                    transfer,
                    "ranks %d and %d both write its sums to one place"
                            .formatted(places[place].from(), transfer.from()));
        }
        places[place] = transfer;
        if (places == own) {
            adding.set(key(transfer.to(), transfer.tag()));
        }
        if (places != whole) {
            handedOn.set(key(transfer.from(), transfer.tag()));
        }
    }

    /** What is wrong with a transfer in a lane of {@code rank}, or null. */
    private String fault(int rank, Transfer transfer) {
        int from = transfer.from();
        int source = transfer.source();
        if (!isRank(from) || !isRank(transfer.to()) || !isRank(source)) {
            return "leaves the group of " + ranks() + " ranks";
        }
        if (from == transfer.to()) {
            return "goes from a rank to itself";
        }
        if (transfer.chunk() < 0 || transfer.chunk() >= chunks.count(source)) {
            return "the shard has " + chunks.count(source) + " chunks";
        }
        int tag = chunks.tag(source, transfer.chunk());
        if (transfer.tag() != tag) {
            return "tag is " + transfer.tag() + ", expected " + tag;
        }
        if (from != rank || transfer.initiator() != Initiator.SENDER) {
            return "is not put by its sender";
        }
        if (transfer.credit() != 0) {
            return "credit is " + transfer.credit() + ", expected 0";
        }
        return placeFault(transfer);
    }

    private static String placeFault(Transfer transfer) {
        int slot = transfer.slot();
        int own = Reduction.slotOf(transfer.from());
        if (slot != Reduction.PARTIAL && slot != Reduction.WHOLE && slot != own) {
            return "slot is %d, expected %d, %d or the sender's, %d"
                    .formatted(slot, Reduction.PARTIAL, Reduction.WHOLE, own);
        }
        return null;
    }

    private int ranks() {
        return chunks.shards().ranks();
    }

    private boolean isRank(int rank) {
        return rank >= 0 && rank < ranks();
    }
}
