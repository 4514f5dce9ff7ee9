package dev.weft.predict;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.predict.MachineModel.PredictedCall;
import dev.weft.tensor.DType;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

class MachineModelTest {

    @Test
    void overlapHidesPartOfTheGather() {
        MachineModel machine = MachineModel.of("h200-nvlink8");
        Chunks chunks = machine.chunks(Shards.even(16384, 8), 8192, 7);
        PredictedCall pull = machine.predict(Algorithm.MESH_PULL, chunks, 7, DType.BF16, 4096);
        PredictedCall first = machine.predict(Algorithm.SEQUENTIAL, chunks, 7, DType.BF16, 4096);

        assertTrue(pull.ns() >= pull.boundNs(), pull::toString);
        assertTrue(pull.ns() >= pull.gatherNs() && pull.ns() >= pull.productNs(), pull::toString);
        assertTrue(pull.ns() < first.ns(), () -> pull + " beside " + first);
        assertEquals(pull, machine.predict(Algorithm.MESH_PULL, chunks, 7, DType.BF16, 4096));
    }

    @Test
    void everyModelHasANameAndALine() {
        for (String name : MachineModel.names()) {
            assertEquals(name, MachineModel.of(name).name());
            assertTrue(MachineModel.of(name).description().length() > 10);
        }
        assertEquals(Hosts.of(8, 8), MachineModel.of("h200-nvlink8").hosts(16));
    }

    @Test
    void whatAMachineCannotDoIsRefused() {
        MachineModel machine = MachineModel.of("trn2");
        Chunks chunks = machine.chunks(Shards.even(1024, 4), 512, 1);
        refused(
                "direct on trn2: its ranks cannot multiply rows in a peer's memory",
                () -> machine.predict(Algorithm.DIRECT, chunks, 1, DType.BF16, 512));
        refused(
                "algorithm auto has no plan of its own: expected the algorithm it stands for",
                () -> machine.predict(Algorithm.AUTO, chunks, 1, DType.BF16, 512).ns());
        refused(Path.of("no.json") + ": no such file", () -> MachineModel.of("no.json"));
        List<String> names = MachineModel.names();
        refused(
                "unknown machine 'abacus': expected one of "
                        + String.join(", ", names)
                        + ", here or a path that ends in .json",
                () -> MachineModel.of("abacus"));
    }

    private static void refused(String message, Runnable call) {
        assertEquals(message, assertThrows(IllegalArgumentException.class, call::run).getMessage());
    }
}
