package dev.weft.op.exec;

import dev.weft.op.Operator;
import dev.weft.op.Operator.View;
import dev.weft.search.Candidate;
import dev.weft.search.Trial;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * A trial of candidates, each as a prepared operator.
 *
 * @param fill writes ordinary values into a shard: memory that was never written is read faster
 *     than other memory, and multiplying zeros needs less power
 * @param <M> the matrices: in host memory, or on a GPU
 * @param <O> the operator
 */
public record OperatorTrial<M, O extends Operator<M>>(
        Function<Candidate, O> operators, Consumer<M> fill) implements Trial<O> {

    /** The byte that fills shards: no zero and no NaN in any type. */
    public static final byte ORDINARY = 0x3f;

    /** Calls use two places for A in turn. */
    private static final int PLACES = 2;

    @Override
    public O prepare(Candidate candidate) {
        O operator = operators.apply(candidate);
        try {
            for (int copy = 0; copy < PLACES; copy++) {
                fill.accept(operator.nextShard());
                callNs(operator);
            }
            return operator;
        } catch (RuntimeException | Error e) {
            operator.close();
            throw e;
        }
    }

    @Override
    public long callNs(O operator) {
        return operator.callInPlace(View.PIPELINED).elapsedNs();
    }

    @Override
    public void close(O operator) {
        operator.close();
    }
}
