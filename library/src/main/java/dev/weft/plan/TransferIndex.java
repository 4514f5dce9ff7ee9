package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.List;

/**
 * The transfers of all lanes by what they deliver. It exists only if every transfer is well formed
 * and every rank gets each remote chunk exactly once. Immutable once built.
 *
 * @param transfers per receiver and tag
 * @param lanes per receiver and tag: the index of the transfer's lane in its initiator's plan
 * @param positions per receiver and tag: its position in that lane
 */
record TransferIndex(
        Chunks chunks, Storage storage, Transfer[] transfers, int[] lanes, int[] positions) {

    /** Reads the lanes of all plans. Throws a {@link PlanException} if a transfer is wrong. */
    static TransferIndex of(List<RankPlan> plans) {
        Chunks cut = plans.getFirst().chunks();
        int count = Math.multiplyExact(plans.size(), cut.total());
        Storage kept = plans.getFirst().storage();
        TransferIndex index =
                new TransferIndex(cut, kept, new Transfer[count], new int[count], new int[count]);
        for (RankPlan plan : plans) {
            for (Lane lane : plan.lanes()) {
                index.add(plan.rank(), lane);
            }
        }
        if (index.storage != Storage.IN_PLACE) {
            index.checkNoneIsMissing();
        }
        return index;
    }

    /** The transfer that brings the chunk {@code tag} to {@code rank}; null for its own chunks. */
    Transfer delivering(int rank, int tag) {
        return transfers[key(rank, tag)];
    }

    /** The index of the lane that brings the chunk, in the plan of the transfer's initiator. */
    int lane(int rank, int tag) {
        return lanes[key(rank, tag)];
    }

    /** The position within that lane. */
    int position(int rank, int tag) {
        return positions[key(rank, tag)];
    }

    /** The rank whose lane carries the transfer. */
    static int initiator(Transfer transfer) {
        return transfer.initiator() == Initiator.SENDER ? transfer.from() : transfer.to();
    }

    private int key(int rank, int tag) {
        return rank * chunks.total() + tag;
    }

    private void add(int rank, Lane lane) {
        for (int position = 0; position < lane.transfers().size(); position++) {
            Transfer transfer = lane.transfers().get(position);
            String fault = fault(rank, transfer);
            if (fault != null) {
                throw new PlanException(rank, transfer, fault);
            }
            int key = key(transfer.to(), transfer.tag());
            if (transfers[key] != null) {
                throw new PlanException(transfer.to(), transfer, "delivered more than once");
            }
            transfers[key] = transfer;
            lanes[key] = lane.index();
            positions[key] = position;
        }
    }

    /** What is wrong with a transfer in a lane of {@code rank}, or null. */
    private String fault(int rank, Transfer transfer) {
        int source = transfer.source();
        if (!isRank(transfer.from()) || !isRank(transfer.to()) || !isRank(source)) {
            return "leaves the group of " + ranks() + " ranks";
        }
        if (transfer.from() == transfer.to()) {
            return "goes from a rank to itself";
        }
        if (transfer.to() == source) {
            return "delivers a rank its own chunk";
        }
        if (storage == Storage.IN_PLACE) {
            return "moves a chunk that stays in place";
        }
        if (transfer.chunk() < 0 || transfer.chunk() >= chunks.count(source)) {
            return "the shard has " + chunks.count(source) + " chunks";
        }
        int tag = chunks.tag(source, transfer.chunk());
        if (transfer.tag() != tag) {
            return "tag is " + transfer.tag() + ", expected " + tag;
        }
        if (initiator(transfer) != rank) {
            return "stands in a lane of another rank than its initiator";
        }
        return placeFault(transfer);
    }

    private String placeFault(Transfer transfer) {
        boolean isPingPong = storage == Storage.PING_PONG;
        int slot = transfer.slot();
        if (isPingPong && slot != 0 && slot != 1) {
            return "slot is " + slot + ", expected 0 or 1";
        }
        if (!isPingPong && slot != transfer.source()) {
            return "slot is " + slot + ", expected the place of source " + transfer.source();
        }
        int limit = isPingPong ? ranks() - 1 : 0;
        if (transfer.credit() < 0 || transfer.credit() > limit) {
            return "credit is " + transfer.credit() + ", expected 0 to " + limit;
        }
        return null;
    }

    private int ranks() {
        return chunks.shards().ranks();
    }

    private boolean isRank(int rank) {
        return rank >= 0 && rank < ranks();
    }

    private void checkNoneIsMissing() {
        for (int rank = 0; rank < ranks(); rank++) {
            for (int source = 0; source < ranks(); source++) {
                for (int chunk = 0; source != rank && chunk < chunks.count(source); chunk++) {
                    if (delivering(rank, chunks.tag(source, chunk)) == null) {
                        throw new PlanException(rank, source, chunk, "never delivered");
                    }
                }
            }
        }
    }
}
