package dev.weft.tensor;

import dev.weft.text.SafeText;
import java.util.ArrayList;
import java.util.List;

/**
 * The dictionary in the header of an {@code .npy} file: a Python literal with exactly the keys
 * {@code descr}, {@code fortran_order} and {@code shape}. Immutable.
 *
 * @param descr NumPy's name of the element type
 */
record NpyHeader(String descr, boolean fortranOrder, List<Long> shape) {

    /**
     * NumPy reserves space for the first size to grow to this many digits without moving the data.
     */
    private static final int GROWTH_DIGITS = 21;

    /** NumPy's own limit. */
    private static final int MAX_DIMENSIONS = 64;

    /** The dictionary that NumPy writes for {@code matrix}, with that space. */
    static String text(Matrix matrix) {
        String descr =
                switch (matrix.dtype()) {
                    case FP32 -> "<f4";
                    case FP16 -> "<f2";
                    case BF16 -> "<V2";
                    // NumPy's only 8-bit types are integers.
                    case E4M3, E5M2 -> "|u1";
                };
        String rows = Long.toString(matrix.rows());
        return "{'descr': '%s', 'fortran_order': False, 'shape': (%s, %s), }%s"
                .formatted(descr, rows, matrix.cols(), " ".repeat(GROWTH_DIGITS - rows.length()));
    }

    /** Refuses an array that is no matrix. */
    void checkMatrix(InputFile file) {
        if (shape.size() != 2) {
            throw file.refusal(
                    ("holds an array of %s dimensions %s: expected 2, rows and columns"
                                    + " (NumPy: a.reshape(rows, cols))")
                            .formatted(shape.size(), SafeText.excerpt(shape.toString())));
        }
    }

    /** What NumPy makes of most numbers; it is rounded to fp32. */
    boolean isFloat64() {
        return descr.equals("<f8");
    }

    /**
     * The type of elements of 32 bits or fewer.
     *
     * @param expected the type of plain bytes, which may be any; null if the caller does not know
     */
    DType dtype(InputFile file, DType expected) {
        return switch (descr) {
            case "<f4" -> DType.FP32;
            case "<f2" -> DType.FP16;
            case "<V2", "|V2", "bfloat16" -> DType.BF16;
            // Only e5m2 is a float of one byte to NumPy; ml_dtypes registers all others as V1.
            case "<f1" -> DType.E5M2;
            case "<V1", "|V1", "|u1" -> {
                if (expected == null || !expected.isScaled()) {
                    throw file.refusal(
                            "holds bytes ('%s'), which may be e4m3 or e5m2: say which (weft run: --dtype fp8 --a-dtype e4m3), or use a safetensors file"
                                    .formatted(descr));
                }
                yield expected;
            }
            default -> {
                String quoted = "'" + SafeText.excerpt(descr) + "'";
                throw file.refusal(
                        (descr.startsWith(">")
                                        ? "is big-endian (" + quoted + "): expected little-endian "
                                        : "holds elements of type " + quoted + ": expected ")
                                + "'<f8', '<f4', '<f2', '<V2' (bf16), '<f1' or '<V1' (fp8)");
            }
        };
    }

    static NpyHeader parse(String text, InputFile file) {
        return new Parser(text, file).header();
    }

    /** Reads only the Python that such a header may contain. */
    private static final class Parser {
        private final String text;
        private final InputFile file;
        private int position;

        Parser(String text, InputFile file) {
            this.text = text;
            this.file = file;
        }

        NpyHeader header() {
            String descr = null;
            Boolean fortranOrder = null;
            List<Long> shape = null;
            expect('{');
            while (!accept('}')) {
                String key = string("a key");
                expect(':');
                if (key.equals("descr") && descr == null) {
                    descr = string("the name of a plain element type");
                } else if (key.equals("fortran_order") && fortranOrder == null) {
                    fortranOrder = bool();
                } else if (key.equals("shape") && shape == null) {
                    shape = sizes();
                } else {
                    throw file.refusal(
                            "has an unknown or repeated key '%s' in its header"
                                    .formatted(SafeText.excerpt(key)));
                }
                if (!accept(',') && !at('}')) {
                    throw unexpected("',' or '}'");
                }
            }
            if (descr == null || fortranOrder == null || shape == null) {
                throw file.refusal("lacks descr, fortran_order or shape in its header");
            }
            skipSpace();
            if (position < text.length()) {
                throw unexpected("nothing more");
            }
            return new NpyHeader(descr, fortranOrder, List.copyOf(shape));
        }

        private String string(String what) {
            char quote = at('"') ? '"' : '\'';
            if (!accept(quote)) {
                throw unexpected(what + " in quotes");
            }
            int end = text.indexOf(quote, position);
            if (end < 0) {
                throw unexpected("a closing quote after");
            }
            String value = text.substring(position, end);
            position = end + 1;
            return value;
        }

        private boolean bool() {
            skipSpace();
            for (String word : List.of("True", "False")) {
                if (text.startsWith(word, position)) {
                    position += word.length();
                    return word.equals("True");
                }
            }
            throw unexpected("True or False");
        }

        private List<Long> sizes() {
            List<Long> sizes = new ArrayList<>();
            expect('(');
            while (!accept(')')) {
                sizes.add(size());
                if (sizes.size() > MAX_DIMENSIONS) {
                    throw file.refusal(
                            "has more than " + MAX_DIMENSIONS + " dimensions: expected 2");
                }
                if (!accept(',') && !at(')')) {
                    throw unexpected("',' or ')'");
                }
            }
            return sizes;
        }

        private long size() {
            skipSpace();
            int end = position;
            while (end < text.length() && text.charAt(end) >= '0' && text.charAt(end) <= '9') {
                end++;
            }
            if (end == position) {
                throw unexpected("a size of zero or more");
            }
            String digits = text.substring(position, end);
            position = end;
            // Python 2 marks long integers like this.
            accept('L');
            try {
                return Long.parseLong(digits);
            } catch (NumberFormatException e) {
                String shown = SafeText.excerpt(digits);
                throw file.refusal("has a size of " + shown + ", which does not fit 64 bits", e);
            }
        }

        private void expect(char wanted) {
            if (!accept(wanted)) {
                throw unexpected("'" + wanted + "'");
            }
        }

        private boolean accept(char wanted) {
            boolean there = at(wanted);
            if (there) {
                position++;
            }
            return there;
        }

        private boolean at(char wanted) {
            skipSpace();
            return position < text.length() && text.charAt(position) == wanted;
        }

        private void skipSpace() {
            while (position < text.length() && " \t\r\n".indexOf(text.charAt(position)) >= 0) {
                position++;
            }
        }

        private IllegalArgumentException unexpected(String wanted) {
            String rest = text.substring(position);
            return file.refusal(
                    "has a header that Weft cannot read: expected %s where it says '%s'"
                            .formatted(wanted, SafeText.excerpt(rest)));
        }
    }
}
