package dev.weft.plan.step;

/**
 * What a rectangle of a buffer holds. Shifts lead from an element's place in the buffer to its
 * place in the whole matrix.
 */
sealed interface Content {

    long rowShift();

    long colShift();

    /** The same elements, moved by some rows and columns to another place. */
    Content moved(long rows, long cols);

    /** Elements of A, or of B: the kind of the buffer tells. */
    record Elements(long rowShift, long colShift) implements Content {

        @Override
        public Content moved(long rows, long cols) {
            return new Elements(rowShift - rows, colShift - cols);
        }
    }

    /** Sums of elements of C. */
    record Sums(SumOrder order, long rowShift, long colShift) implements Content {

        @Override
        public Content moved(long rows, long cols) {
            return new Sums(order, rowShift - rows, colShift - cols);
        }

        /** The same sums as bf16; rounding twice changes nothing. */
        Sums rounded() {
            return order instanceof SumOrder.Rounded
                    ? this
                    : new Sums(new SumOrder.Rounded(order), rowShift, colShift);
        }
    }
}
