package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** Writes the plans of {@link Algorithm#byPrograms}. */
record ProgramPlans(PlanWriter base, int programs) implements PlanWriter {

    ProgramPlans {
        if (programs < 1) {
            throw new IllegalArgumentException(
                    programs + " programs: expected at least one of them");
        }
    }

    @Override
    public String label() {
        return base.label();
    }

    @Override
    public boolean isSymmetric() {
        return base.isSymmetric();
    }

    /** A block is a chunk, so that it belongs to one program. */
    @Override
    public Chunks cut(Chunks given) {
        Shards shards = given.shards();
        for (int r = 0; r < shards.ranks(); r++) {
            if (shards.rows(r) % (programs * given.chunkRows(r)) != 0) {
                throw new IllegalArgumentException(
                        "%s rows of rank %s in chunks of %s for %s programs: expected as many whole chunks for each"
                                .formatted(shards.rows(r), r, given.chunkRows(r), programs));
            }
        }
        Chunks cut = Chunks.ofFullRows(shards, given.cols(), given.chunkRows(0), given::chunkRows);
        return given.chunkCols() < given.cols() ? cut.withChunkCols(given.chunkCols()) : cut;
    }

    @Override
    public List<RankPlan> plans(Chunks chunks, int lanes, Hosts hosts) {
        Chunks cut = cut(chunks);
        List<RankPlan> plans = base.plans(cut, lanes, hosts);
        if (!(plans instanceof WrittenPlans)) {
            // Not Weft's own plans: the checker has to prove them.
            return plans.stream().map(this::byProgram).toList();
        }
        return new WrittenPlans(
                plans.size(),
                hosts,
                Objects.hash("programs", programs, base.label(), lanes, cut),
                rank -> byProgram(plans.get(rank)));
    }

    private RankPlan byProgram(RankPlan plan) {
        Chunks chunks = plan.chunks();
        List<Lane> arrivals = new ArrayList<>(split(plan.arrivals(), chunks));
        arrivals.removeIf(lane -> lane.transfers().isEmpty());
        return plan.withLanes(split(plan.lanes(), chunks), arrivals)
                .withConsumption(
                        plan.consumption().stream()
                                .map(b -> b.by(program(chunks, b.source(), b.firstRow())))
                                .toList());
    }

    /** Each lane becomes one for each program, which carries that program's chunks. */
    private List<Lane> split(List<Lane> lanes, Chunks chunks) {
        List<Lane> split = new ArrayList<>();
        for (Lane lane : lanes) {
            for (int p = 0; p < programs; p++) {
                int program = p;
                List<Transfer> own =
                        lane.transfers().stream()
                                .filter(t -> program(chunks, t) == program)
                                .toList();
                split.add(new Lane(lane.index() * programs + p, own));
            }
        }
        return split;
    }

    private int program(Chunks chunks, Transfer transfer) {
        int source = transfer.source();
        return program(chunks, source, chunks.chunk(source, transfer.chunk()).firstRow());
    }

    private int program(Chunks chunks, int source, long row) {
        return Math.toIntExact(row / (chunks.shards().rows(source) / programs));
    }
}
