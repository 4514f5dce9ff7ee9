package dev.weft.op;

import dev.weft.fabric.transport.CoreShare;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.Affinity;
import dev.weft.process.Fallback;

/**
 * The core that each compute worker is pinned to. Ranks that share cores use them in order: a
 * rank's workers follow those of the rank before it. Workers are pinned only if the ranks use all
 * cores: with more workers the system must be free to share the cores fairly, with fewer it must be
 * free to avoid cores that others use. Lane workers are never pinned: they run on whichever core is
 * idle.
 *
 * @param cores empty if workers are not pinned
 */
record Pinning(int[] cores, int firstWorker) {

    static final Pinning NONE = new Pinning(new int[0], 0);

    /** For ranks with {@code workers} compute workers each. */
    static Pinning of(Transport fabric, int workers) {
        if (Affinity.unavailable().isPresent()) {
            Fallback.report("workers that are not pinned to cores", Affinity.unavailable().get());
            return NONE;
        }
        CoreShare share = fabric.cores();
        return of(Affinity.allowed(), share.index(), share.sharers(), workers);
    }

    static Pinning of(int[] cores, int index, int sharers, int workers) {
        boolean takesAll = (long) sharers * workers == cores.length;
        return takesAll ? new Pinning(cores, index * workers) : NONE;
    }

    /** The core of worker {@code index}, or -1. */
    int coreOf(int index) {
        return cores.length == 0 ? -1 : cores[firstWorker + index];
    }

    /** Called by the worker's own thread. */
    void apply(int index) {
        int core = coreOf(index);
        if (core >= 0 && !Affinity.pin(core)) {
            Fallback.report("workers that are not pinned to cores", "core " + core + " is refused");
        }
    }
}
