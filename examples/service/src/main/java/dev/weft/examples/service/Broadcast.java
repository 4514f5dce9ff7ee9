package dev.weft.examples.service;

import dev.weft.fabric.Fabric;
import dev.weft.op.AllGather;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Tells all ranks the texts of a batch: a gather of one row, which is rank 0's. The row has the
 * number of tokens and then the tokens, the first one of each text as {@code ~token}, which is
 * negative. fp32 holds all of them exactly: there are fewer than 2^24.
 */
final class Broadcast implements AutoCloseable {

    /** In place of the number of tokens: there are no more batches. */
    private static final int END = -1;

    private final AllGather<Matrix> gather;
    private long calls;

    /** Collective. */
    Broadcast(Fabric fabric, int mostTokens) {
        long[] rows = new long[fabric.size()];
        rows[0] = 1;
        gather =
                AllGather.rows(
                        fabric,
                        Shards.of(rows),
                        1L + mostTokens,
                        DType.FP32,
                        fabric.sharesMemory() ? Algorithm.MESH_PULL : Algorithm.MESH_PUSH);
    }

    /** Of rank 0: the next batch, which may be empty. */
    void send(List<int[]> texts) {
        Matrix row = gather.nextShard();
        int count = 0;
        for (int[] text : texts) {
            for (int i = 0; i < text.length; i++) {
                row.set(0, ++count, i == 0 ? ~text[i] : text[i]);
            }
        }
        send(row, count);
    }

    /** Of rank 0: that there are no more. */
    void sendEnd() {
        send(gather.nextShard(), END);
    }

    private void send(Matrix row, int count) {
        row.set(0, 0, count);
        gather.call(row);
        calls++;
    }

    /** Of the other ranks: the next batch; empty at the end. */
    Optional<List<int[]>> receive() {
        Matrix row = gather.call(gather.nextShard());
        int end = 1 + (int) row.get(0, 0);
        if (end == 1 + END) {
            return Optional.empty();
        }
        List<int[]> texts = new ArrayList<>();
        int first = 1;
        for (int next = first + 1; next <= end; next++) {
            if (next == end || row.get(0, next) < 0) {
                texts.add(text(row, first, next));
                first = next;
            }
        }
        return Optional.of(texts);
    }

    private static int[] text(Matrix row, int first, int end) {
        int[] text = new int[end - first];
        for (int i = 0; i < text.length; i++) {
            text[i] = (int) row.get(0, first + (long) i);
        }
        text[0] = ~text[0];
        return text;
    }

    /** Calls of the operator on rank 0 so far. */
    long calls() {
        return calls;
    }

    @Override
    public void close() {
        gather.close();
    }
}
