package dev.weft.cuda.kernel;

import dev.weft.cuda.Gpu;
import dev.weft.process.Fallback;
import dev.weft.sim.Machine;
import dev.weft.sim.MachineFile;
import dev.weft.sim.Machines;
import dev.weft.sim.TileEngine;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;

/**
 * The model of the GPU at hand, by which plans are priced: the one that {@code weft calibrate
 * --gpu} has kept for such a card, or else that of an H200 with as many multiprocessors as this
 * card has. Any thread may call it.
 */
public final class GpuModel {

    /** Peers in host memory, or reached through it. */
    private static final String MODEL = "h200-pcie";

    /** Ranks that reach each other's GPUs. */
    private static final String LINKED_MODEL = "h200-nvlink8";

    private GpuModel() {}

    /**
     * @param gpu null if there is none: then the model is that of an H200
     * @param linked whether ranks reach each other's GPUs; what was measured of copies is then of
     *     no use, since it is about host memory
     */
    public static Machine of(Gpu gpu, boolean linked) {
        return gpu == null
                ? Machines.named(linked ? LINKED_MODEL : MODEL)
                : of(stored(gpu), gpu.multiprocessors(), linked);
    }

    /** A model for the card, without what was measured of it. */
    public static Machine assumed(int multiprocessors, boolean linked) {
        return of(null, multiprocessors, linked);
    }

    private static Machine of(Machine measured, int multiprocessors, boolean linked) {
        Machine shipped = Machines.named(linked ? LINKED_MODEL : MODEL);
        if (measured == null) {
            TileEngine engine = (TileEngine) shipped.engine();
            return shipped.withEngine(
                    new TileEngine(
                            multiprocessors,
                            engine.tileRows(),
                            engine.tileCols(),
                            engine.gflops(),
                            engine.tileUs()));
        }
        return linked ? shipped.withEngine(measured.engine()) : measured;
    }

    /** The file with what was measured on this kind of card. */
    public static Path path(Gpu gpu) {
        return Machines.herePath(describe(gpu));
    }

    /** What is known of a card is kept under this description. */
    public static String describe(Gpu gpu) {
        return "%s, %s multiprocessors, compute capability %s"
                .formatted(gpu.name(), gpu.multiprocessors(), gpu.capability() / 10.0);
    }

    /** Null if no file is there, or that of another card. */
    private static Machine stored(Gpu gpu) {
        Path file = path(gpu);
        if (!Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
            return null;
        }
        try {
            Machine machine = MachineFile.readCached(file);
            boolean same =
                    machine.description().equals(describe(gpu))
                            && machine.engine() instanceof TileEngine;
            return same ? machine : null;
        } catch (IllegalArgumentException e) {
            Fallback.report("prices of GPU plans by the model of an H200", e.getMessage());
            return null;
        }
    }
}
