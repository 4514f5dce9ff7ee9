package dev.weft.compat;

import dev.weft.op.AllGather;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Runs the programs of one rank side by side: the first on the caller's thread, each other one on a
 * thread of its own. Each gathers its run of rows and, where there are several or the caller gave a
 * place, copies it there. Used by one thread.
 */
final class Sb2sbPrograms implements AutoCloseable {

    private final List<AllGather<Matrix>> programs;
    private final Arena arena = Arena.ofShared();
    private final Matrix joined;
    private final ExecutorService others;

    Sb2sbPrograms(List<AllGather<Matrix>> programs, DType dtype, long outRows, long outCols) {
        this.programs = programs;
        boolean alone = programs.size() == 1;
        this.joined = alone ? null : Matrix.allocate(arena, dtype, outRows, outCols);
        this.others =
                alone
                        ? null
                        : Executors.newFixedThreadPool(
                                programs.size() - 1,
                                Thread.ofPlatform().daemon().name("weft-program-", 1).factory());
    }

    /**
     * @param out the caller's, or null: then the result holds until the next call
     */
    Matrix call(Matrix inp, Matrix out) {
        if (programs.size() == 1 && out == null) {
            return programs.getFirst().call(inp);
        }
        Matrix target = out == null ? joined : out;
        List<CompletableFuture<Void>> running = new ArrayList<>();
        for (int p = 1; p < programs.size(); p++) {
            int program = p;
            running.add(CompletableFuture.runAsync(() -> gather(program, inp, target), others));
        }
        RuntimeException failure = null;
        try {
            gather(0, inp, target);
        } catch (RuntimeException e) {
            failure = e;
        }
        // All of them, also after a failure: they write into the caller's memory.
        for (CompletableFuture<Void> program : running) {
            failure = join(program, failure);
        }
        if (failure != null) {
            throw failure;
        }
        return target;
    }

    private void gather(int program, Matrix inp, Matrix target) {
        long inpRows = inp.rows() / programs.size();
        long outRows = target.rows() / programs.size();
        Matrix gathered = programs.get(program).call(inp.rows(program * inpRows, inpRows));
        target.rows(program * outRows, outRows).copyFrom(gathered);
    }

    /** An interrupt does not end the wait: peers depend on the call. */
    private static RuntimeException join(
            CompletableFuture<Void> program, RuntimeException earlier) {
        try {
            program.join();
            return earlier;
        } catch (CompletionException e) {
            if (earlier != null) {
                earlier.addSuppressed(e.getCause());
                return earlier;
            }
            return e.getCause() instanceof RuntimeException cause
                    ? cause
                    : new IllegalStateException(e.getCause());
        }
    }

    @Override
    public void close() {
        if (others != null) {
            others.shutdown();
        }
        arena.close();
    }
}
