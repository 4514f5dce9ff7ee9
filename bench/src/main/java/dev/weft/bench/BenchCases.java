package dev.weft.bench;

import dev.weft.tune.Effort;
import java.nio.file.Path;
import java.util.List;

/** All cases, in the order in which they run. */
final class BenchCases {

    private BenchCases() {}

    /**
     * @param plots the folder for plots, or null for none
     */
    static List<BenchCase> all(Path plots) {
        return List.of(
                new ProductCase(),
                new FusedCase(),
                new OverlapCase(),
                new LabCase(),
                new PredictCase(Effort::thorough),
                new AutoCase(),
                new StartupCase(),
                new RanksCase(plots));
    }

    /** Their words for {@code --only}. */
    static List<String> items() {
        return all(null).stream().map(BenchCase::item).toList();
    }
}
