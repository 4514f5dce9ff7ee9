package dev.weft.examples.llm;

import dev.weft.examples.llm.Attention.Row;
import dev.weft.fabric.Fabric;
import dev.weft.op.AllGather;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * What all ranks compute together in one call of the decoder.
 *
 * @param ids the token of each row
 * @param rows the chat of each row, and its place there
 * @param wanted the rows whose logits are wanted
 */
record Step(int[] ids, Row[] rows, int[] wanted) {

    /** After it there is nothing more to do. */
    static final Step END = new Step(null, null, null);

    /** Nothing to compute yet. */
    static final Step IDLE = new Step(new int[0], new Row[0], new int[0]);

    /**
     * Tells all ranks the next step of rank 0: a gather of one row. fp32 holds its numbers exactly:
     * they are less than 2^24.
     */
    static final class Broadcast implements AutoCloseable {

        private static final int NONE = -1;

        private final AllGather<Matrix> gather;
        private final boolean leads;

        /** Collective. */
        Broadcast(Fabric fabric, int mostRows) {
            long[] rows = new long[fabric.size()];
            rows[0] = 1;
            leads = fabric.rank() == 0;
            gather =
                    AllGather.rows(
                            fabric,
                            Shards.of(rows),
                            2 + 4L * mostRows,
                            DType.FP32,
                            fabric.sharesMemory() ? Algorithm.MESH_PULL : Algorithm.MESH_PUSH);
        }

        /**
         * @param step of rank 0; anything on the others
         * @return the same on all ranks
         */
        Step call(Step step) {
            Matrix row = gather.nextShard();
            if (leads) {
                write(step, row);
            }
            Matrix told = gather.call(row);
            return leads ? step : read(told);
        }

        private static void write(Step step, Matrix row) {
            int at = 0;
            row.set(0, at++, step == END ? NONE : step.ids.length);
            if (step == END) {
                return;
            }
            row.set(0, at++, step.wanted.length);
            for (int i = 0; i < step.ids.length; i++) {
                row.set(0, at++, step.ids[i]);
                row.set(0, at++, step.rows[i].chat());
                row.set(0, at++, step.rows[i].place());
            }
            for (int one : step.wanted) {
                row.set(0, at++, one);
            }
        }

        private static Step read(Matrix row) {
            int count = (int) row.get(0, 0);
            if (count == NONE) {
                return END;
            }
            int[] ids = new int[count];
            Row[] rows = new Row[count];
            int[] wanted = new int[(int) row.get(0, 1)];
            int at = 2;
            for (int i = 0; i < count; i++) {
                ids[i] = (int) row.get(0, at++);
                rows[i] = new Row((int) row.get(0, at++), (int) row.get(0, at++));
            }
            for (int i = 0; i < wanted.length; i++) {
                wanted[i] = (int) row.get(0, at++);
            }
            return new Step(ids, rows, wanted);
        }

        @Override
        public void close() {
            gather.close();
        }
    }
}
