package dev.weft.model;

import dev.weft.model.Memory.Rows;
import dev.weft.op.Operator.View;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.LinkedHashMap;
import java.util.Map;

/** What {@code ComputeWorker} does in one call of one rank. */
final class ComputeScripts {

    private final Call call;
    private final RankPlan plan;
    private final Mutant mutant;
    private final WordTable words;
    private final Memory memory;

    ComputeScripts(Call call) {
        this.call = call;
        this.plan = call.plan();
        this.mutant = call.protocol().mutant();
        this.words = call.protocol().words();
        this.memory = call.protocol().memory();
    }

    /** Worker {@code worker} takes every {@code step}-th block from its own on. */
    void write(Script script, int worker, int step) {
        boolean gatherFirst = plan.pacing().gatherFirst();
        if (call.view() == View.COMM_ONLY || gatherFirst && call.view() == View.PIPELINED) {
            awaitEverything(script);
        }
        if (call.view() == View.COMM_ONLY) {
            return;
        }
        for (int i = worker; i < plan.consumption().size(); i += step) {
            RowBlock block = plan.consumption().get(i);
            if (block.source() == plan.rank()) {
                read(script, block);
            } else if (call.view() == View.PIPELINED) {
                awaitRows(script, block);
                multiplyRemote(script, block);
            }
        }
    }

    /** What a lane brings from one rank arrives in order: the last flag covers them all. */
    private void awaitEverything(Script script) {
        for (Lane lane : plan.arrivals()) {
            Map<Integer, Transfer> lasts = new LinkedHashMap<>();
            lane.transfers().forEach(transfer -> lasts.put(transfer.from(), transfer));
            for (Transfer last : lasts.values()) {
                script.await(words.flag(plan.rank(), last.tag()), call.number());
            }
        }
        if (plan.storage() == Storage.IN_PLACE) {
            for (int rank = 0; rank < plan.ranks(); rank++) {
                script.await(words.start(rank), call.number());
            }
        }
    }

    private void awaitRows(Script script, RowBlock block) {
        int source = block.source();
        if (plan.storage() == Storage.IN_PLACE) {
            if (mutant != Mutant.START_IGNORED) {
                script.await(words.start(source), call.number());
            }
            return;
        }
        if (call.protocol().setting().summaries()) {
            // From the last chunk on; chunks may come by several lanes, each with its counter.
            for (int c = block.chunkCount() - 1; c >= 0; c--) {
                awaitCounter(script, source, block.firstChunk() + c);
            }
        }
        // Flags would hide what is wrong with the counters.
        int flags = mutant == Mutant.COUNTER_FIRST ? 0 : block.chunkCount();
        for (int c = block.firstChunk(); c < block.firstChunk() + flags; c++) {
            script.await(words.flag(plan.rank(), plan.chunks().tag(source, c)), call.number());
        }
    }

    private void awaitCounter(Script script, int source, int chunk) {
        for (Lane lane : plan.arrivals()) {
            for (int place = 0; place < lane.transfers().size(); place++) {
                Transfer transfer = lane.transfers().get(place);
                if (transfer.source() == source && transfer.chunk() == chunk) {
                    boolean put = transfer.initiator() == Initiator.SENDER;
                    int initiator = put ? transfer.from() : plan.rank();
                    int perCall = lane.transfers().size();
                    int value = (call.number() - 1) * perCall + place + 1;
                    script.await(words.counter(plan.rank(), initiator, lane.index()), value);
                }
            }
        }
    }

    private void multiplyRemote(Script script, RowBlock block) {
        if (!call.pingPong()) {
            read(script, block);
            return;
        }
        int step = call.releaseIndex(block.source());
        if (mutant == Mutant.RELEASE_EARLY) {
            script.use(words.release(plan.rank()), step);
        }
        read(script, block);
        if (mutant != Mutant.RELEASE_EARLY) {
            script.use(words.release(plan.rank()), step);
        }
    }

    private void read(Script script, RowBlock block) {
        int source = block.source();
        int index = call.index();
        Rows rows = new Rows(block.firstRow(), block.rows(), 0, plan.chunks().cols());
        boolean fromShard = source == plan.rank() || plan.storage() == Storage.IN_PLACE;
        Part part;
        if (fromShard) {
            part = memory.shard(source, call.slot(), index, rows);
        } else {
            int slot = call.pingPong() ? LaneScripts.buffer(plan, source) : call.slot();
            part = memory.landing(plan.rank(), slot, source, index, rows);
        }
        script.read("row " + block.firstRow() + " of rank " + source, part);
    }
}
