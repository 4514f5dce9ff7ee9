package dev.weft.fabric.mpi;

import dev.weft.fabric.memory.Group;
import dev.weft.fabric.memory.MemoryRegion;
import java.util.BitSet;

/**
 * A region that ranks on other hosts know by its key. It is freed once this rank and all of those
 * have released it: until then one of them may still read it.
 */
final class MpiRegion {

    final MemoryRegion memory;
    final Group group;
    final Runnable free;

    /** The world's ranks that still hold it, among this one and those on other hosts. */
    final BitSet holders = new BitSet();

    MpiRegion(MemoryRegion memory, Group group, int self, Runnable free) {
        this.memory = memory;
        this.group = group;
        this.free = free;
        for (int r = 0; r < group.size(); r++) {
            if (!memory.isMapped(r) || group.worldRank(r) == self) {
                holders.set(group.worldRank(r));
            }
        }
    }

    long ownAddress(int self) {
        return memory.part(group.memberOf(self)).address();
    }
}
