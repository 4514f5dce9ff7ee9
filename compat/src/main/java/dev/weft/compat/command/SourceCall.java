package dev.weft.compat.command;

import dev.weft.cli.run.RankReport;
import dev.weft.cli.run.ViewRounds;
import dev.weft.fabric.Fabric;
import dev.weft.op.Operator;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.util.List;
import java.util.Optional;

/**
 * A source's call, prepared on one rank with its shard in place. Every call is collective.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
interface SourceCall<M> extends ViewRounds.Calls, AutoCloseable {

    /** The shape of a call's result on the rank, in the source's terms. */
    long[] shape();

    /** The path of FGCC's fragments; empty elsewhere. */
    default String path() {
        return "";
    }

    /** The product of one more call, which has written every element again. */
    M product();

    /** Gathered A, if the call gathers it. */
    default Optional<M> gathered() {
        return Optional.empty();
    }

    /** Bytes that the rank keeps where peers can reach them; 0 if unknown. */
    default long reachableBytes() {
        return 0;
    }

    /**
     * @param equal whether the product was bitwise the unfused one
     */
    RankReport report(String device, ViewRounds.Measured measured, boolean exact, boolean equal);

    @Override
    void close();

    /**
     * The call of a prepared operator.
     *
     * @param release closes it
     */
    record OfOperator<M>(
            Fabric world,
            SourceSite<M> site,
            Operator<M> operator,
            long[] shape,
            String path,
            Runnable release)
            implements SourceCall<M> {

        @Override
        public long fusedNs(View view) {
            return operator.callInPlace(view).elapsedNs();
        }

        @Override
        public Timeline timeline() {
            return operator.lastResult().timeline();
        }

        @Override
        public M product() {
            world.barrier();
            site.poison(operator.lastResult().product());
            world.barrier();
            return operator.callInPlace(View.PIPELINED).product();
        }

        @Override
        public long reachableBytes() {
            return operator.reachableBytes();
        }

        @Override
        public RankReport report(
                String device, ViewRounds.Measured measured, boolean exact, boolean equal) {
            return RankReport.of(device, operator, measured, exact, equal, true, List.of());
        }

        @Override
        public void close() {
            release.run();
        }
    }
}
