package dev.weft.compat.command;

import dev.weft.cli.run.RankReport;
import dev.weft.report.Verification;

/**
 * What one rank of a source system's command found.
 *
 * @param shape the shape of a call's result on the rank
 * @param path the path of FGCC's fragments; empty elsewhere
 * @param programs how many programs of a gather have tiles; 1 elsewhere
 * @param reachableBytes bytes that the rank keeps where peers can reach them; 0 if unknown
 * @param judged the verdict by Weft's rules and by the source's, which is {@code seedRulePassed}
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
