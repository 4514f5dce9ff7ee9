package dev.weft.op;

import dev.weft.op.exec.OperatorMemory;
import dev.weft.search.Candidate;
import dev.weft.search.Trial;
import java.util.function.Function;

/** Tries candidates as prepared operators. */
record OperatorTrial(Function<Candidate, AllGatherMatmul> operators)
        implements Trial<AllGatherMatmul> {

    /** Memory that was never written is read faster than any that was. */
    private static final byte ORDINARY = 0x3f;

    @Override
    public AllGatherMatmul prepare(Candidate candidate) {
        AllGatherMatmul operator = operators.apply(candidate);
        try {
            for (int slot = 0; slot < OperatorMemory.SLOTS; slot++) {
                operator.nextShard().data().fill(ORDINARY);
                callNs(operator);
            }
            return operator;
        } catch (RuntimeException | Error e) {
            operator.close();
            throw e;
        }
    }

    @Override
    public long callNs(AllGatherMatmul operator) {
        return operator.callInPlace(View.PIPELINED).elapsedNs();
    }

    @Override
    public void close(AllGatherMatmul operator) {
        operator.close();
    }
}
