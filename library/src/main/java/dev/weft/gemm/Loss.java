package dev.weft.gemm;

import dev.weft.tensor.DType;

/**
 * What an element of a product may lose in other ways than by fp32 sums.
 *
 * @param share of {@code |A| x |B|}
 * @param least however small its operands are
 */
public record Loss(double share, double least) {

    public static final Loss NONE = new Loss(0, 0);

    /** Of {@code |A| x |B|} alone. */
    public static Loss ofShare(double share) {
        return new Loss(share, 0);
    }

    /** By sums of which each of several parts is rounded to a type: half a unit of every part. */
    public static Loss ofParts(DType type, int parts) {
        return new Loss(type.epsilon() / 2, parts * ErrorBound.rounding(type, 0));
    }
}
