package dev.weft.model;

import dev.weft.model.SumCells.Kind;
import dev.weft.op.Operator.View;
import dev.weft.plan.Hosts;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Reduction;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * What the workers of a product that is summed do in one call of one rank: {@code LaneWorker}, and
 * {@code SumWorker}. One compute worker multiplies all blocks and then finishes rows that are
 * whole; a real one may finish some earlier. Any workers: each block and each of these rows has its
 * own.
 */
final class SumScripts {

    private final Call call;
    private final RankPlan plan;
    private final Mutant mutant;
    private final WordTable words;
    private final SumCells cells;

    SumScripts(Call call) {
        this.call = call;
        this.plan = call.plan();
        this.mutant = call.protocol().mutant();
        this.words = call.protocol().words();
        this.cells = call.protocol().cells();
    }

    /** Blocks to multiply and rows to finish. */
    static int items(RankPlan plan) {
        return plan.consumption().size() + plan.added().size() + plan.arrivingWhole().size();
    }

    /** Whose sums arrive to be added. */
    private List<Integer> addends(int tag) {
        return transfers(plan.arrivals())
                .filter(t -> t.slot() >= Reduction.slotOf(0) && t.tag() == tag)
                .map(Transfer::from)
                .toList();
    }

    private boolean multiplies(int tag) {
        return plan.consumption().stream().anyMatch(block -> tag(block) == tag);
    }

    private static Stream<Transfer> transfers(List<Lane> lanes) {
        return lanes.stream().flatMap(lane -> lane.transfers().stream());
    }

    /** What the caller does before the workers start. */
    void input(Script caller) {
        caller.copy("write its A", "written its A", Part.NONE, input(plan.rank()));
    }

    private Part input(int rank) {
        List<Part> parts = new ArrayList<>();
        for (int tag = 0; tag < plan.chunks().total(); tag++) {
            parts.add(part(Kind.INPUT, rank, tag));
        }
        return SumCells.together(parts);
    }

    private Part part(Kind kind, int rank, int tag) {
        return cells.part(kind, rank, tag, call);
    }

    void lane(Script script, Lane lane) {
        if (call.view() == View.COMPUTE_ONLY) {
            return;
        }
        for (Transfer transfer : lane.transfers()) {
            if (mutant != Mutant.NEED_IGNORED) {
                script.await(need(transfer), call.number());
            }
            if (mutant == Mutant.FLAG_FIRST) {
                script.raise(flag(transfer), call.number());
            }
            String what =
                    "sums of chunk %d of rank %d to rank %d"
                            .formatted(transfer.chunk(), transfer.source(), transfer.to());
            script.copy("copy " + what, "copied " + what, from(transfer), to(transfer));
            if (mutant != Mutant.FLAG_FIRST) {
                script.raise(flag(transfer), call.number());
            }
        }
    }

    private OwnedWord need(Transfer transfer) {
        int tag = transfer.tag();
        if (transfer.slot() != Reduction.WHOLE && addends(tag).isEmpty()) {
            return words.sums(Kind.MULTIPLIED, plan.rank(), tag);
        }
        boolean forwards = transfer.slot() == Reduction.WHOLE && arrives(Reduction.WHOLE, tag);
        return words.sums(forwards ? Kind.WHOLE : Kind.SUMMED, plan.rank(), tag);
    }

    private OwnedWord flag(Transfer transfer) {
        Kind kind = landing(transfer.slot());
        int rank = kind == Kind.OWN ? transfer.from() : transfer.to();
        return words.sums(kind, rank, transfer.tag());
    }

    private static Kind landing(int slot) {
        return switch (slot) {
            case Reduction.PARTIAL -> Kind.PARTIAL;
            case Reduction.WHOLE -> Kind.WHOLE;
            default -> Kind.OWN;
        };
    }

    private boolean arrives(int slot, int tag) {
        return transfers(plan.arrivals()).anyMatch(t -> t.slot() == slot && t.tag() == tag);
    }

    private Part from(Transfer transfer) {
        int tag = transfer.tag();
        if (call.view() == View.COMM_ONLY) {
            // Nothing was multiplied, so anything may lie there.
            return Part.NONE;
        }
        if (transfer.slot() == Reduction.WHOLE && arrives(Reduction.WHOLE, tag)) {
            return part(Kind.WHOLE, plan.rank(), tag);
        }
        return addends(tag).isEmpty() ? own(tag) : summed(tag);
    }

    private Part to(Transfer transfer) {
        Kind kind = landing(transfer.slot());
        int rank = kind == Kind.OWN ? transfer.from() : transfer.to();
        return part(kind, rank, transfer.tag());
    }

    /** This rank's place of a chunk, once it is multiplied. */
    private Part own(int tag) {
        Part multiplied = part(Kind.MULTIPLIED, plan.rank(), tag);
        return arrives(Reduction.PARTIAL, tag)
                ? SumCells.together(List.of(multiplied, part(Kind.PARTIAL, plan.rank(), tag)))
                : multiplied;
    }

    /** The same, once all ranks' sums are added there. */
    private Part summed(int tag) {
        Part summed = part(Kind.SUMMED, plan.rank(), tag);
        return multiplies(tag)
                ? SumCells.together(List.of(summed, part(Kind.MULTIPLIED, plan.rank(), tag)))
                : summed;
    }

    /** Worker {@code worker} takes every {@code step}-th item from its own on. */
    void compute(Script script, int worker, int step) {
        List<RowBlock> blocks = plan.consumption();
        List<RowBlock> added = plan.added();
        for (int i = worker; i < items(plan); i += step) {
            int number = i - blocks.size();
            if (number < 0) {
                multiply(script, blocks.get(i), i == blocks.size() - 1);
            } else if (call.view() != View.COMPUTE_ONLY && number < added.size()) {
                add(script, tag(added.get(number)));
            } else if (call.view() != View.COMPUTE_ONLY) {
                whole(script, tag(plan.arrivingWhole().get(number - added.size())));
            }
        }
    }

    private void multiply(Script script, RowBlock block, boolean last) {
        int tag = tag(block);
        boolean waits = call.view() != View.COMPUTE_ONLY;
        boolean goesOn = waits && arrives(Reduction.PARTIAL, tag);
        boolean productFirst = plan.pacing().gatherFirst();
        if (goesOn && mutant != Mutant.PARTIAL_IGNORED) {
            script.await(words.sums(Kind.PARTIAL, plan.rank(), tag), call.number());
        }
        if (mutant == Mutant.MULTIPLIED_FIRST && waits) {
            script.raise(words.sums(Kind.MULTIPLIED, plan.rank(), tag), call.number());
        }
        if (call.view() != View.COMM_ONLY) {
            List<Part> reads = new ArrayList<>(List.of(part(Kind.INPUT, plan.rank(), tag)));
            Hosts hosts = call.protocol().setting().hosts();
            for (int rank = 0; waits && rank < plan.ranks(); rank++) {
                if (rank != plan.rank() && plan.sumsFor(rank, hosts)) {
                    if (mutant != Mutant.START_IGNORED) {
                        script.await(words.start(rank), call.number());
                    }
                    reads.add(part(Kind.INPUT, rank, tag));
                }
            }
            if (goesOn) {
                reads.add(part(Kind.PARTIAL, plan.rank(), tag));
            }
            Part to = part(Kind.MULTIPLIED, plan.rank(), tag);
            script.copy(
                    "multiply row " + tag, "multiplied row " + tag, SumCells.together(reads), to);
        }
        if (waits && !productFirst) {
            raise(script, tag);
        } else if (waits && productFirst && last) {
            plan.consumption().forEach(each -> raise(script, tag(each)));
        }
    }

    private int tag(RowBlock block) {
        return plan.chunks().tag(block.source(), block.firstChunk());
    }

    private void raise(Script script, int tag) {
        script.raise(words.sums(Kind.MULTIPLIED, plan.rank(), tag), call.number());
        if (addends(tag).isEmpty()) {
            if (!isHandedOn(tag)) {
                read(script, own(tag), tag);
            }
            script.raise(words.sums(Kind.SUMMED, plan.rank(), tag), call.number());
        }
    }

    private boolean isHandedOn(int tag) {
        return transfers(plan.lanes()).anyMatch(t -> t.tag() == tag && t.slot() != Reduction.WHOLE);
    }

    /** Rounds rows into the results. */
    private void read(Script script, Part sums, int tag) {
        if (call.view() != View.COMM_ONLY) {
            script.read("whole sums of row " + tag, sums);
        }
    }

    private void whole(Script script, int tag) {
        if (mutant != Mutant.WHOLE_IGNORED) {
            script.await(words.sums(Kind.WHOLE, plan.rank(), tag), call.number());
        }
        read(script, part(Kind.WHOLE, plan.rank(), tag), tag);
    }

    private void add(Script script, int tag) {
        OwnedWord done = words.sums(Kind.SUMMED, plan.rank(), tag);
        List<Part> parts = new ArrayList<>();
        List<Integer> added = new ArrayList<>(addends(tag));
        if (multiplies(tag)) {
            added.add(plan.rank());
        }
        added.sort(null);
        for (int rank : added) {
            Kind kind = rank == plan.rank() ? Kind.MULTIPLIED : Kind.OWN;
            if (mutant != Mutant.PARTS_IGNORED) {
                script.await(words.sums(kind, rank, tag), call.number());
            }
            parts.add(part(kind, rank, tag));
        }
        if (mutant == Mutant.SUMMED_FIRST) {
            script.raise(done, call.number());
        }
        if (call.view() != View.COMM_ONLY) {
            String what = "all ranks' sums of row " + tag;
            Part to = part(Kind.SUMMED, plan.rank(), tag);
            script.copy("add " + what, "added " + what, SumCells.together(parts), to);
        }
        if (!isHandedOn(tag)) {
            read(script, summed(tag), tag);
        }
        if (mutant != Mutant.SUMMED_FIRST) {
            script.raise(done, call.number());
        }
    }
}
