package dev.weft.tune;

import dev.weft.gemm.Gemm;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.Machine;
import dev.weft.sim.MachineFile;
import dev.weft.sim.Machines;
import dev.weft.telemetry.Fallback;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The model of the machine that Weft runs on, for each engine: as {@code weft calibrate} has kept
 * it, otherwise measured in a second when it is first asked for, and kept. Any thread may call it.
 */
public final class Here {

    private static final Map<String, Machine> BY_ENGINE = new ConcurrentHashMap<>();

    private Here() {}

    /**
     * A model that knows the costs of A of type {@code aType}.
     *
     * @param heartbeat called now and then while it measures
     */
    public static synchronized Machine machine(Gemm gemm, DType aType, Runnable heartbeat) {
        Machine known = BY_ENGINE.get(gemm.name());
        if (known == null) {
            known = kept(Calibration.description(gemm));
        }
        if (known == null || !known.engine().knows(aType)) {
            Machine measured =
                    Calibration.measure(gemm, EnumSet.of(aType), Effort.quick(heartbeat));
            known = known == null ? measured : joined(measured, known);
            keep(known);
        }
        BY_ENGINE.put(gemm.name(), known);
        return known;
    }

    /** What is known of other types stays as it was. */
    private static Machine joined(Machine measured, Machine known) {
        CoreEngine engine = (CoreEngine) measured.engine();
        Map<DType, CoreEngine.Costs> costs = new EnumMap<>(((CoreEngine) known.engine()).costs());
        costs.putAll(engine.costs());
        return known.withEngine(
                new CoreEngine(
                        engine.cores(),
                        engine.capacity(),
                        costs,
                        engine.blockUs(),
                        engine.rowQuantum(),
                        engine.blockRows()));
    }

    /** The file's model, unless it is of another engine or another number of cores. */
    private static Machine kept(String description) {
        Path file = Machines.herePath();
        if (!Files.isRegularFile(file)) {
            return null;
        }
        try {
            Machine machine = MachineFile.read(file);
            boolean same =
                    machine.description().equals(description)
                            && machine.engine() instanceof CoreEngine;
            return same ? machine : null;
        } catch (IllegalArgumentException e) {
            Fallback.tell("a machine model measured anew", e.getMessage());
            return null;
        }
    }

    /** Where it cannot be kept, the next process measures again. */
    private static void keep(Machine machine) {
        Path file = Machines.herePath();
        if (Files.exists(file) && kept(machine.description()) == null) {
            // The user's, for another engine.
            return;
        }
        try {
            Files.createDirectories(file.getParent());
            MachineFile.write(machine, file);
        } catch (IOException | UncheckedIOException | IllegalArgumentException e) {
            Fallback.tell("a machine model that is measured by every process", e.getMessage());
        }
    }
}
