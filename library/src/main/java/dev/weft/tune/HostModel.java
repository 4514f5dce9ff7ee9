package dev.weft.tune;

import dev.weft.files.PrivateFiles;
import dev.weft.gemm.Gemm;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.Machine;
import dev.weft.sim.MachineFile;
import dev.weft.sim.Machines;
import dev.weft.telemetry.Fallback;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * The cached model of the machine that Weft runs on, for each engine. If {@code weft calibrate} has
 * not stored one, it is measured when first needed, which takes some seconds, and stored. Any
 * thread may call it.
 */
public final class HostModel {

    private static final String UNSTORED = "a machine model that is measured by every process";
    private static final long LOOK_MS = 100;
    private static final ReentrantLock IN_PROCESS = new ReentrantLock();

    /** Guarded by the lock. */
    private static final Map<String, Machine> BY_ENGINE = new HashMap<>();

    private HostModel() {}

    /**
     * The model, with the costs of an A of type {@code aType}.
     *
     * @param heartbeat called now and then while it measures
     */
    public static Machine machine(Gemm gemm, DType aType, Runnable heartbeat) {
        await(heartbeat, () -> IN_PROCESS.tryLock(LOOK_MS, TimeUnit.MILLISECONDS));
        try {
            Machine known = BY_ENGINE.get(gemm.name());
            if (known == null || !known.engine().knows(aType)) {
                known =
                        measured(
                                Machines.herePath(),
                                Calibration.description(gemm),
                                aType,
                                known,
                                () ->
                                        Calibration.measure(
                                                gemm, EnumSet.of(aType), Effort.quick(heartbeat)),
                                heartbeat);
                BY_ENGINE.put(gemm.name(), known);
            }
            return known;
        } finally {
            IN_PROCESS.unlock();
        }
    }

    /**
     * Reads or measures the model. One process at a time measures, and the next reads the result.
     *
     * @param path the file of the model
     * @param description that of the engine
     * @param known what this process has measured before, or null: the file may be for another
     *     engine
     */
    static Machine measured(
            Path path,
            String description,
            DType aType,
            Machine known,
            Supplier<Machine> measuring,
            Runnable heartbeat) {
        Path file;
        try {
            file =
                    PrivateFiles.cache(path.toAbsolutePath().getParent())
                            .resolve(path.getFileName());
        } catch (IOException e) {
            // Others could have written the file, so it is not read.
            Fallback.tell(
                    UNSTORED,
                    e.getMessage() + "; or set XDG_CACHE_HOME to a folder that only you can write");
            Machine measured = measuring.get();
            return known == null ? measured : joined(measured, known);
        }
        try (FileChannel lock =
                FileChannel.open(
                        file.resolveSibling("machine.lock"),
                        StandardOpenOption.CREATE,
                        StandardOpenOption.WRITE,
                        LinkOption.NOFOLLOW_LINKS)) {
            await(
                    heartbeat,
                    () -> {
                        FileLock held = lock.tryLock();
                        if (held == null) {
                            Thread.sleep(LOOK_MS);
                        }
                        return held != null;
                    });
            return storedOrMeasured(file, description, aType, known, measuring);
        } catch (IOException e) {
            Fallback.tell(UNSTORED, e.toString());
            return storedOrMeasured(file, description, aType, known, measuring);
        }
    }

    private static Machine storedOrMeasured(
            Path file,
            String description,
            DType aType,
            Machine known,
            Supplier<Machine> measuring) {
        Machine stored = stored(file, description);
        Machine base = stored == null ? known : stored;
        if (base != null && base.engine().knows(aType)) {
            return base;
        }
        Machine measured = measuring.get();
        Machine whole = base == null ? measured : joined(measured, base);
        store(whole, file);
        return whole;
    }

    /** A step that is repeated until it succeeds. */
    private interface Attempt {
        boolean succeeds() throws InterruptedException, IOException;
    }

    /** Waits for a lock, which others hold for some seconds at most. */
    private static void await(Runnable heartbeat, Attempt attempt) {
        try {
            while (!attempt.succeeds()) {
                heartbeat.run();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while another measures the machine", e);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Adds what was measured to what is known of other types. */
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

    /** The stored model; null if it is for another engine or another number of cores. */
    static Machine stored(Path file, String description) {
        if (!Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
            return null;
        }
        try {
            Machine machine = MachineFile.readCached(file);
            boolean same =
                    machine.description().equals(description)
                            && machine.engine() instanceof CoreEngine;
            return same ? machine : null;
        } catch (IllegalArgumentException e) {
            Fallback.tell("a machine model measured anew", e.getMessage());
            return null;
        }
    }

    /** Stores the model. If that fails, the next process measures again. */
    private static void store(Machine machine, Path file) {
        if (isOfAnotherEngine(file, machine)) {
            return;
        }
        try {
            MachineFile.writeCached(machine, file);
        } catch (UncheckedIOException | IllegalArgumentException e) {
            Fallback.tell(UNSTORED, e.getMessage());
        }
    }

    /**
     * Whether the file has a model of this machine for another engine, which is not overwritten.
     */
    private static boolean isOfAnotherEngine(Path file, Machine machine) {
        if (!Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
            return false;
        }
        try {
            Machine there = MachineFile.readCached(file);
            return there.engine() instanceof CoreEngine cores
                    && cores.cores() == ((CoreEngine) machine.engine()).cores()
                    && !there.description().equals(machine.description());
        } catch (IllegalArgumentException e) {
            // It cannot be read, which stored() has reported: the new one replaces it.
            return false;
        }
    }
}
