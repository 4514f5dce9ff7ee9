package dev.weft.cli.compat;

import dev.weft.cli.run.RankReport;
import dev.weft.report.Verification;

/**
 * What one rank of a source system's command found.
 *
 * @param shape of what a call gives the rank
 * @param path by which FGCC's fragments travel; empty elsewhere
 * @param programs of a gather that have tiles; 1 elsewhere
 * @param reachableBytes that the rank keeps where peers reach them; 0 where nobody asked
 * @param judged by the source's own rule, which is what {@code seedRulePassed} is about, and by
 *     Weft's
 * @param run how it ran and how long it took
 */
record SourceReport(
        int rank,
        long[] shape,
        String path,
        int programs,
        long reachableBytes,
        Verification judged,
        RankReport run) {

    boolean passed() {
        return judged.passed();
    }
}
