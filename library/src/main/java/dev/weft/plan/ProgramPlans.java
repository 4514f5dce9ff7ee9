package dev.weft.plan;

import dev.weft.plan.step.StepPlan;
import java.util.List;

/** Writes the plans of {@link Algorithm#byPrograms}. */
record ProgramPlans(GatherWriter base, int programs) implements GatherWriter {

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
    public List<StepPlan> plans(GatherRequest request) {
        return base.plans(request.with(cut(request.chunks()), programs));
    }
}
