package dev.weft.tune;

import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.process.Fallback;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.Machine;
import dev.weft.sim.MachineFile;
import dev.weft.sim.Machines;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The model of the machine that Weft runs on, for each engine: the one that the command has stored,
 * or else one that is measured when first needed, with {@link Effort#quick}, and kept for the life
 * of the process. Nothing is written. Thread-safe.
 */
public final class HostModel {

    private static final long LOOK_MS = 100;

    /** How long a model is valid that was measured while other programs used the cores. */
    private static final Duration DISTURBED_COUNTS = Duration.ofHours(1);

    private static final ReentrantLock IN_PROCESS = new ReentrantLock();

    /** Guarded by the lock. */
    private static final Map<String, Machine> BY_DESCRIPTION = new HashMap<>();

    private HostModel() {}

    /** The model, with the costs for an A of this type; calls the heartbeat while it measures. */
    public static Machine machine(Gemm gemm, DType aType, Runnable heartbeat) {
        awaitTurn(heartbeat);
        try {
            Function<DType, Gemm> engines = engines(gemm, aType);
            String description = Calibration.description(engines);
            Machine known = BY_DESCRIPTION.get(description);
            Machine model =
                    knowing(
                            aType,
                            known == null
                                    ? stored(Machines.herePath(description), description)
                                    : known,
                            () -> measured(engines, aType, heartbeat));
            BY_DESCRIPTION.put(description, model);
            return model;
        } finally {
            IN_PROCESS.unlock();
        }
    }

    private static Machine measured(
            Function<DType, Gemm> engines, DType aType, Runnable heartbeat) {
        System.getLogger("dev.weft")
                .log(
                        System.Logger.Level.INFO,
                        "measuring this machine for auto, for some seconds; ./weft calibrate does"
                                + " it once for all");
        return Calibration.measure(engines, EnumSet.of(aType), Effort.quick(heartbeat));
    }

    /** Others measure for a few seconds at most. */
    private static void awaitTurn(Runnable heartbeat) {
        try {
            while (!IN_PROCESS.tryLock(LOOK_MS, TimeUnit.MILLISECONDS)) {
                heartbeat.run();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while another measures the machine", e);
        }
    }

    /** The known model (null for none), with the costs of this type measured if necessary. */
    public static Machine knowing(DType aType, Machine known, Supplier<Machine> measuring) {
        if (known != null && known.engine().knows(aType)) {
            return known;
        }
        Machine measured = measuring.get();
        return known == null ? measured : joined(measured, known);
    }

    /** Adds what was measured to what is known about other types. */
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
                        engine.blockRows(),
                        engine.inCalls()));
    }

    /**
     * The engines of the model that has an engine's costs for an A of a type: those that auto uses,
     * one for each type, if it is one of them.
     */
    public static Function<DType, Gemm> engines(Gemm gemm, DType aType) {
        return Gemms.auto(aType, aType).name().equals(gemm.name())
                ? type -> Gemms.auto(type, type)
                : type -> gemm;
    }

    /** The path of the model for these engines and this number of cores. */
    public static Path path(Function<DType, Gemm> engines) {
        return Machines.herePath(Calibration.description(engines));
    }

    /** The model in a file; null if there is none for these engines and this number of cores. */
    public static Machine stored(Path file, Function<DType, Gemm> engines) {
        return stored(file, Calibration.description(engines));
    }

    private static boolean isNew(Path file) {
        try {
            Instant modified = Files.getLastModifiedTime(file).toInstant();
            return modified.plus(DISTURBED_COUNTS).isAfter(Instant.now());
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read the age of " + file, e);
        }
    }

    static Machine stored(Path file, String description) {
        if (!Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
            return null;
        }
        try {
            Machine machine = MachineFile.readCached(file);
            boolean same =
                    machine.description().equals(description)
                            && machine.engine() instanceof CoreEngine
                            && (Calibration.isUndisturbed(machine) || isNew(file));
            return same ? machine : null;
        } catch (IllegalArgumentException e) {
            Fallback.report("a machine model measured anew", e.getMessage());
            return null;
        }
    }
}
