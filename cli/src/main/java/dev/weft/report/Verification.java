package dev.weft.report;

import dev.weft.json.JsonField;
import java.util.ArrayList;
import java.util.List;

/**
 * Whether a run's result was correct.
 *
 * @param promise what the engine promises, and so what must hold to pass
 * @param gatheredExact gathered A equalled the inputs byte for byte on every rank; null if it was
 *     not checked
 * @param bitwiseEqualToUnfused every rank's product equalled one single-threaded product of all
 *     rows; on GPUs, the rank's own product after a whole gather, and the other ranks' products
 * @param withinBound every checked element was within 2 sqrt(K) eps (|A| x |B|) of float64, plus
 *     one rounding of the output type, or was infinite or NaN because inputs are or sums can
 *     overflow; on GPUs, every element was also near a plain sum on the device
 * @param seedRulePassed the Ascend example's rule against golden held; null if there is no golden
 * @param maxAbsErr against float64, over the checked elements
 * @param relErr max|c - ref| / (max|ref| + 1e-9)
 * @param checkedRows rows of C compared with float64, in all their columns
 * @param totalRows rows of C
 * @param freivalds whether the whole C also passed Freivalds' check (if not all rows were compared)
 * @param notFinite checked elements that are infinite or NaN, as expected; the errors do not count
 *     them
 */
public record Verification(
        Promise promise,
        @JsonField(optional = true) Boolean gatheredExact,
        boolean bitwiseEqualToUnfused,
        boolean withinBound,
        @JsonField(optional = true) Boolean seedRulePassed,
        @JsonField(least = JsonField.ANY) double maxAbsErr,
        @JsonField(least = JsonField.ANY) double relErr,
        long checkedRows,
        long totalRows,
        boolean freivalds,
        @JsonField(optional = true) long notFinite) {

    public boolean passed() {
        return isNotFalse(gatheredExact) && bitsAsPromised() && passedLoosely();
    }

    /** Whether the bits are those of the unfused product, or the engine does not promise that. */
    public boolean bitsAsPromised() {
        return bitwiseEqualToUnfused || promise == Promise.FLOAT64_BOUND;
    }

    /** Whether another program's product would pass: correct numbers, in any order of sums. */
    public boolean passedLoosely() {
        return withinBound && isNotFalse(seedRulePassed) && (freivalds || checkedRows == totalRows);
    }

    private static boolean isNotFalse(Boolean judgement) {
        return !Boolean.FALSE.equals(judgement);
    }

    /** The combined verdict on two parts of a run, of different rows. */
    public Verification and(Verification other) {
        return with(other, checkedRows + other.checkedRows, totalRows + other.totalRows);
    }

    /** The combined verdict on different columns of the same rows, which count once. */
    public Verification andColumns(Verification other) {
        return with(
                other,
                Math.min(checkedRows, other.checkedRows),
                Math.max(totalRows, other.totalRows));
    }

    private Verification with(Verification other, long checked, long total) {
        return new Verification(
                promise,
                both(gatheredExact, other.gatheredExact),
                bitwiseEqualToUnfused && other.bitwiseEqualToUnfused,
                withinBound && other.withinBound,
                both(seedRulePassed, other.seedRulePassed),
                Math.max(maxAbsErr, other.maxAbsErr),
                Math.max(relErr, other.relErr),
                checked,
                total,
                // If all rows of a part were compared, the check was not needed there.
                (freivalds || checkedRows == totalRows)
                        && (other.freivalds || other.checkedRows == other.totalRows)
                        && (freivalds || other.freivalds),
                notFinite + other.notFinite);
    }

    /** Null if neither was checked. */
    private static Boolean both(Boolean held, Boolean otherHeld) {
        if (held == null || otherHeld == null) {
            return held == null ? otherHeld : held;
        }
        return held && otherHeld;
    }

    /** Everything that was found wrong, in one line. */
    public String describeFailure() {
        List<String> wrong = new ArrayList<>();
        if (!isNotFalse(gatheredExact)) {
            wrong.add("gathered A differs from the inputs");
        }
        if (!bitsAsPromised()) {
            wrong.add("a product differs from the unfused one");
        }
        if (!withinBound) {
            wrong.add("the float64 bound is exceeded (max_abs_err " + maxAbsErr + ")");
        }
        if (!isNotFalse(seedRulePassed)) {
            wrong.add("too many elements differ from golden.bin");
        }
        if (!freivalds && checkedRows < totalRows) {
            wrong.add("Freivalds' check refuses it");
        }
        return String.join(", ", wrong);
    }
}
