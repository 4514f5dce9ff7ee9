package dev.weft.sim;

import dev.weft.tensor.DType;
import java.util.Map;

/** Checks shared by engines. */
final class Rates {

    private Rates() {}

    static void check(Map<DType, Double> gflops) {
        gflops.forEach(
                (type, rate) -> {
                    if (!(rate > 0)) {
                        throw new IllegalArgumentException(
                                rate
                                        + " GFLOP/s for "
                                        + type.label()
                                        + ": expected more than zero");
                    }
                });
    }
}
