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
 * The model of the machine that Weft runs on, for each engine: as {@code weft calibrate} has kept
 * it, otherwise measured in some seconds when it is first asked for, and kept. Any thread may call
 * it.
 */
public final class HostModel {

    private static final String UNKEPT = "a machine model that is measured by every process";
    private static final long LOOK_MS = 100;
    private static final ReentrantLock IN_PROCESS = new ReentrantLock();

    /** Guarded by the lock. */
    private static final Map<String, Machine> BY_ENGINE = new HashMap<>();

    private HostModel() {}

    /**
     * A model that knows the costs of A of type {@code aType}.
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
     * One process at a time measures, and the next finds what it kept.
     *
     * @param path where it is kept
     * @param description that of the engine
     * @param here what this process has measured before, or null: the file may be of another engine
     */
    static Machine measured(
            Path path,
            String description,
            DType aType,
            Machine here,
            Supplier<Machine> measuring,
            Runnable heartbeat) {
        Path file;
        try {
            file =
                    PrivateFiles.cache(path.toAbsolutePath().getParent())
                            .resolve(path.getFileName());
        } catch (IOException e) {
            // What others could have put there is not looked at.
            Fallback.tell(
                    UNKEPT,
                    e.getMessage() + "; or set XDG_CACHE_HOME to a folder that only you can write");
            Machine measured = measuring.get();
            return here == null ? measured : joined(measured, here);
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
            return keptOrMeasured(file, description, aType, here, measuring);
        } catch (IOException e) {
            Fallback.tell(UNKEPT, e.toString());
            return keptOrMeasured(file, description, aType, here, measuring);
        }
    }

    private static Machine keptOrMeasured(
            Path file, String description, DType aType, Machine here, Supplier<Machine> measuring) {
        Machine kept = kept(file, description);
        Machine known = kept == null ? here : kept;
        if (known != null && known.engine().knows(aType)) {
            return known;
        }
        Machine measured = measuring.get();
        Machine whole = known == null ? measured : joined(measured, known);
        keep(whole, file);
        return whole;
    }

    /** Something to try until it succeeds. */
    private interface Attempt {
        boolean succeeds() throws InterruptedException, IOException;
    }

    /** Others measure for some seconds at most; whoever waits for this rank hears of it. */
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
    static Machine kept(Path file, String description) {
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

    /** Where it cannot be kept, the next process measures again. */
    private static void keep(Machine machine, Path file) {
        if (isOfAnotherEngine(file, machine)) {
            return;
        }
        try {
            MachineFile.writeCached(machine, file);
        } catch (UncheckedIOException | IllegalArgumentException e) {
            Fallback.tell(UNKEPT, e.getMessage());
        }
    }

    /** What was measured for another engine of this machine is not written over. */
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
            // It cannot be read, which kept() has told: the new one takes its place.
            return false;
        }
    }
}
