package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.ffi.Affinity;
import dev.weft.telemetry.Fallback;

/**
 * Which core each compute worker stays on. Ranks of a world take cores in order: rank r's workers
 * follow those of rank r - 1. Only a world that takes all cores pins: with more workers the system
 * must be free to share the cores fairly, with fewer to keep away from cores that others use. Lane
 * workers are never pinned: they run where a core waits.
 */
final class Pinning {

    private static final Pinning NONE = new Pinning(new int[0], 0);

    private final int[] cores;
    private final int firstWorker;

    private Pinning(int[] cores, int firstWorker) {
        this.cores = cores;
        this.firstWorker = firstWorker;
    }

    static Pinning none() {
        return NONE;
    }

    /** For a rank with {@code workers} compute workers in a world where every rank has as many. */
    static Pinning of(Fabric fabric, int workers) {
        if (Affinity.unavailable().isPresent()) {
            Fallback.tell("workers that are not pinned to cores", Affinity.unavailable().get());
            return NONE;
        }
        return of(Affinity.allowed(), fabric.worldRank(fabric.rank()), fabric.worldSize(), workers);
    }

    static Pinning of(int[] cores, int worldRank, int worldSize, int workers) {
        boolean takesAll = (long) worldSize * workers == cores.length;
        return takesAll ? new Pinning(cores, worldRank * workers) : NONE;
    }

    /** The core of worker {@code index}, or -1. */
    int coreOf(int index) {
        return cores.length == 0 ? -1 : cores[firstWorker + index];
    }

    /** Called by the worker's own thread. */
    void apply(int index) {
        int core = coreOf(index);
        if (core >= 0 && !Affinity.pin(core)) {
            Fallback.tell("workers that are not pinned to cores", "core " + core + " is refused");
        }
    }
}
