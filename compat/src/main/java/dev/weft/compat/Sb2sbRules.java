package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/** What the SBUF-to-SBUF gathers refuse, with the actual numbers. Pure. */
final class Sb2sbRules {

    private Sb2sbRules() {}

    static void world(Fabric world) {
        if (world == null) {
            throw new IllegalArgumentException("no world: expected the fabric of all ranks");
        }
    }

    /** A rank in no group gathers alone, whatever its tp degree. */
    static void groups(Fabric world, ReplicaGroups groups, int tpDegree) {
        int own = groups.in(world.size()).groupOf(world.rank());
        int ranks = own < 0 ? tpDegree : groups.groups().get(own).size();
        if (tpDegree != ranks) {
            throw new IllegalArgumentException(
                    "tp_degree is %s, rank %s is in a replica group of %s ranks (%s): expected the ranks of its group"
                            .formatted(tpDegree, world.rank(), ranks, groups));
        }
    }

    static void sizes(long rows, long cols) {
        if (rows < 1 || cols < 1) {
            throw new IllegalArgumentException(
                    "an input of [" + rows + ", " + cols + "]: expected at least one of each");
        }
    }

    static void partitions(long h) {
        if (h > Sb2sb.MAX_TILE_ROWS) {
            throw new IllegalArgumentException(
                    "H is %s: expected at most %s rows; the tiled gather takes more"
                            .formatted(h, Sb2sb.MAX_TILE_ROWS));
        }
    }

    static void capacity(long h, long w, DType dtype, long onChipBytes) {
        long bytes = Matrix.contiguousBytes(dtype, h, w);
        if (bytes > onChipBytes) {
            throw new IllegalArgumentException(
                    ("the input [%s, %s] %s is %s bytes: expected at most the on-chip"
                                    + " capacity of %s; the tiled gather takes more")
                            .formatted(h, w, dtype.label(), bytes, onChipBytes));
        }
    }

    static long tileRows(long m) {
        return Math.min(m, Sb2sb.MAX_TILE_ROWS);
    }

    /** A single tile is one program's work; the other programs have none. */
    static int programs(long m, int lnc) {
        return m == tileRows(m) ? 1 : lnc;
    }

    static void tiles(long m, int lnc) {
        long tileRows = tileRows(m);
        if (m % tileRows != 0) {
            throw new IllegalArgumentException(
                    "M is " + m + ": expected at most 128 rows or a multiple of 128");
        }
        long tiles = m / tileRows;
        if (lnc < 1 || tiles % programs(m, lnc) != 0) {
            throw new IllegalArgumentException(
                    "%s tiles of %s rows (M is %s) for %s LNC programs: expected one tile, or tiles that the programs divide"
                            .formatted(tiles, tileRows, m, lnc));
        }
    }
}
