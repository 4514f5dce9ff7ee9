package dev.weft.cli.options;

import static dev.weft.cli.console.UsageException.refuseIf;

/** What the Ascend example refuses and Weft does not, for comparisons with the original. Pure. */
final class AscendRules {

    private static final int MAX_RANKS = 16;

    private AscendRules() {}

    /** The message names the first rule that the numbers break. */
    static void check(int ranks, long m, long k, long n, long baseM, long baseN) {
        require(baseN % 4 == 0, "base-n %s is not divisible by 4", baseN);
        require(m % baseM == 0, "M %s is not divisible by base-m %s", m, baseM);
        require(k % baseN == 0, "K %s is not divisible by base-n %s", k, baseN);
        require(n % baseN == 0, "N %s is not divisible by base-n %s", n, baseN);
        long rowGroups = m / baseM;
        require(
                rowGroups % ranks == 0,
                "%s ranks do not divide the %s row groups",
                ranks,
                rowGroups);
        require(ranks <= MAX_RANKS, "%s ranks are more than %s", ranks, MAX_RANKS);
    }

    static void require(boolean holds, String otherwise, Object... values) {
        refuseIf(!holds, otherwise + " (the Ascend example refuses this)", values);
    }
}
