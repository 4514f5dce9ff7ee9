package dev.weft.cli.run;

import dev.weft.cli.console.Progress;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.fabric.Fabric;
import java.io.IOException;

/** All that one rank of a run does, wherever it runs. */
@FunctionalInterface
interface RankJob {

    /**
     * Collective.
     *
     * @param world null where the other ranks exist as host memory only
     */
    RankReport run(Fabric world) throws IOException;

    /**
     * @param progress drawn by the rank that is given a visible one
     * @param listener null where nobody listens to any rank; a GPU's ranks tell nothing
     */
    static RankJob of(
            RunOptions.Inputs inputs,
            ExecutionSpec execution,
            Progress progress,
            RoundListener listener) {
        return execution.cuda()
                ? new CudaRankRun(
                        inputs.problem(), execution, inputs.operands(), inputs.folder(), progress)
                : new RankRun(
                        inputs.problem(),
                        execution,
                        inputs.operands(),
                        inputs.folder(),
                        progress,
                        listener);
    }
}
