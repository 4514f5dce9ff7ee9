package dev.weft.stress;

import dev.weft.fabric.Fabric;
import dev.weft.op.Operator;
import dev.weft.op.Operator.PendingCall;
import dev.weft.op.Result;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;

/**
 * One rank's part of an operator, every result of which is compared bit for bit with what products
 * of the scalar engine on one rank give (of AMX, if that is what a gather multiplies with). A
 * changes from call to call: its contents repeat every five calls, buffers every two, so that
 * whatever stays from an earlier call shows.
 */
final class CheckedOperator implements AutoCloseable {

    private static final int CONTENTS = 5;

    /** A result that is not the unfused one. */
    static final class WrongResult extends RuntimeException {
        private static final long serialVersionUID = 1L;

        WrongResult(String message) {
            super(message);
        }
    }

    private final int rank;
    private final RandomProblem problem;
    private final Matrix[] a = new Matrix[CONTENTS];

    /** By content. */
    private final List<List<Matrix>> expected = new ArrayList<>();

    private final Operator<Matrix> operator;
    private PendingCall<Matrix> pending;
    private int calls;

    /** Collective; all ranks give the same problem. */
    CheckedOperator(Fabric fabric, RandomProblem problem, Arena arena) {
        this.rank = fabric.rank();
        this.problem = problem;
        RandomProblem.Operands operands = problem.operands(arena);
        for (int i = 0; i < CONTENTS; i++) {
            a[i] = problem.a(i, arena);
            expected.add(problem.expected(a[i], operands, rank, arena));
            fabric.worked();
        }
        this.operator = problem.prepare(fabric, operands);
    }

    /** Starts the next call; if {@code inPlace}, its input is made where peers read it. */
    void start(boolean inPlace) {
        Matrix input = problem.input(a[calls % CONTENTS], rank);
        if (inPlace) {
            Matrix place = operator.nextShard();
            place.copyFrom(input);
            input = place;
        }
        pending = operator.start(input);
    }

    /** Bytes that were compared. */
    long finish() {
        Result<Matrix> result = pending.await();
        int content = calls++ % CONTENTS;
        long bytes = 0;
        for (int i = 0; i < expected.get(content).size(); i++) {
            Matrix wanted = expected.get(content).get(i);
            long row = wanted.firstDifferentRow(result.product(i));
            if (row >= 0) {
                throw new WrongResult(
                        "%s: row %d of product %d of call %d".formatted(problem, row, i, calls));
            }
            bytes += wanted.rows() * wanted.rowBytes();
        }
        if (problem.kept()) {
            if (!a[content].bitwiseEquals(result.gathered().orElseThrow())) {
                throw new WrongResult("%s: gathered A of call %d".formatted(problem, calls));
            }
            bytes += a[content].rows() * a[content].rowBytes();
        }
        return bytes;
    }

    /** A call whose result nobody looks at, with the input that lies in its place. */
    void unchecked(View view) {
        operator.callInPlace(view);
    }

    @Override
    public void close() {
        operator.close();
    }
}
