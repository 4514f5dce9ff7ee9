package dev.weft.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.List;

/** The matrices that a gathered A is multiplied with, [K, N] or transposed. Used by one thread. */
final class RightHandSides {

    private final List<Matrix> matrices = new ArrayList<>();
    private final List<Boolean> transposed = new ArrayList<>();

    void add(Matrix b, boolean isTransposed) {
        matrices.add(b);
        transposed.add(isTransposed);
    }

    int count() {
        return matrices.size();
    }

    Matrix matrix(int index) {
        return matrices.get(index);
    }

    boolean isTransposed(int index) {
        return transposed.get(index);
    }

    /** N of each. */
    List<Long> columns() {
        List<Long> columns = new ArrayList<>();
        for (int i = 0; i < count(); i++) {
            columns.add(isTransposed(i) ? matrix(i).rows() : matrix(i).cols());
        }
        return columns;
    }

    /** The type of a product where none was asked for. */
    DType productType(int index, DType aType) {
        return DType.promote(aType, matrix(index).dtype());
    }

    /** K of all of them, of which there must be one. */
    long innerSize() {
        long k = innerSize(0);
        for (int i = 0; i < count(); i++) {
            if (innerSize(i) != k || k < 1) {
                throw new IllegalArgumentException(
                        "B number "
                                + i
                                + " is "
                                + matrix(i).describe()
                                + (isTransposed(i) ? " transposed" : "")
                                + ": expected K = "
                                + Math.max(k, 1)
                                + " as of B number 0");
            }
        }
        return k;
    }

    private long innerSize(int index) {
        return isTransposed(index) ? matrix(index).cols() : matrix(index).rows();
    }
}
