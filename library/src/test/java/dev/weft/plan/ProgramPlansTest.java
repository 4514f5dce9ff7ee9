package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.plan.GatherView.Block;
import dev.weft.plan.GatherView.Lane;
import dev.weft.plan.step.StepChecker;
import dev.weft.plan.step.StepPlan;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ProgramPlansTest {

    private static final Chunks TILES = Chunks.byRows(Shards.of(768, 768, 768, 768), 16, 128, 1000);

    @ParameterizedTest
    @EnumSource(value = Algorithm.class, mode = EnumSource.Mode.EXCLUDE, names = "AUTO")
    void programsShareRowsInEqualRunsOfChunks(Algorithm algorithm) {
        Hosts hosts = Hosts.one(4);
        GatherRequest request = PlanCases.request(TILES, 2, hosts);
        GatherWriter writer = Algorithm.byPrograms(algorithm, 3);
        List<StepPlan> plans = writer.plans(request);
        StepChecker.check(plans, request.placement(), hosts::shareMemory);
        for (GatherView plan : GatherView.of(plans, writer.cut(TILES))) {
            assertEquals(3, plan.plan().programs());
            assertEquals(4 * 6, plan.consumption().size());
            for (Block block : plan.consumption()) {
                assertEquals(block.firstRow() / 256, block.program(), block.toString());
                assertEquals(128, block.rows());
            }
            for (Lane lane : plan.lanes()) {
                Set<Integer> programs =
                        lane.moves().stream()
                                .map(transfer -> transfer.chunk() / 2)
                                .collect(Collectors.toSet());
                assertEquals(Set.of(lane.index() % 3), programs, "lane " + lane.index());
            }
        }
    }

    @Test
    void aCutThatProgramsCannotShareIsRefused() {
        IllegalArgumentException refusal =
                assertThrows(
                        IllegalArgumentException.class,
                        () ->
                                Algorithm.byPrograms(Algorithm.RING, 4)
                                        .plans(PlanCases.request(TILES, 1, Hosts.one(4))));
        assertEquals(
                "768 rows of rank 0 in chunks of 128 for 4 programs: expected as many whole chunks for each",
                refusal.getMessage());
    }
}
