package dev.weft.report;

/**
 * Whether a run was right.
 *
 * @param gatheredExact gathered A equalled the inputs byte for byte on every rank
 * @param bitwiseEqualToUnfused every rank's product equalled one single-threaded product of all
 *     rows
 * @param withinBound every checked element lay within 2 sqrt(K) eps (|A| x |B|) of float64, plus
 *     one rounding of the output type
 * @param seedRulePassed the Ascend example's rule against golden held (true where no golden exists)
 * @param maxAbsErr against float64, over the checked elements
 * @param relErr max|c - ref| / (max|ref| + 1e-9)
 * @param checkedRows rows of C compared with float64
 * @param totalRows rows of C
 * @param freivalds whether the whole C also passed Freivalds' check (where not all rows were
 *     compared)
 */
public record Verification(
        boolean gatheredExact,
        boolean bitwiseEqualToUnfused,
        boolean withinBound,
        boolean seedRulePassed,
        double maxAbsErr,
        double relErr,
        long checkedRows,
        long totalRows,
        boolean freivalds) {

    public boolean passed() {
        return gatheredExact && bitwiseEqualToUnfused && passedLoosely();
    }

    /** As another program's product would be judged: right numbers, whatever the order of sums. */
    public boolean passedLoosely() {
        return withinBound && seedRulePassed && (freivalds || checkedRows == totalRows);
    }
}
