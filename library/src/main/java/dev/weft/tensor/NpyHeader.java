package dev.weft.tensor;

import dev.weft.process.SafeText;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

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
        private static final String SPACE = "[ \\t\\r\\n]*";

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
            expect("\\{", "'{'");
            while (accept("}") == null) {
                String key = string("a key");
                expect(":", "':'");
                if (key.equals("descr") && descr == null) {
                    descr = string("the name of a plain element type");
                } else if (key.equals("fortran_order") && fortranOrder == null) {
                    fortranOrder = expect("True|False", "True or False").equals("True");
                } else if (key.equals("shape") && shape == null) {
                    shape = sizes();
                } else {
                    throw file.refusal(
                            "has an unknown or repeated key '%s' in its header"
                                    .formatted(SafeText.excerpt(key)));
                }
                expect(",|(?=})", "',' or '}'");
            }
            if (descr == null || fortranOrder == null || shape == null) {
                throw file.refusal("lacks descr, fortran_order or shape in its header");
            }
            expect("$", "nothing more");
            return new NpyHeader(descr, fortranOrder, List.copyOf(shape));
        }

        private String string(String what) {
            String quoted = expect("'[^']*'|\"[^\"]*\"", what + " in quotes");
            return quoted.substring(1, quoted.length() - 1);
        }

        private List<Long> sizes() {
            List<Long> sizes = new ArrayList<>();
            expect("\\(", "'('");
            while (accept("\\)") == null) {
                String digits = expect("[0-9]+", "a size of zero or more");
                // Python 2 marks long integers like this.
                accept("L");
                try {
                    sizes.add(Long.parseLong(digits));
                } catch (NumberFormatException e) {
                    String shown = SafeText.excerpt(digits);
                    throw file.refusal(
                            "has a size of " + shown + ", which does not fit 64 bits", e);
                }
                if (sizes.size() > MAX_DIMENSIONS) {
                    throw file.refusal(
                            "has more than " + MAX_DIMENSIONS + " dimensions: expected 2");
                }
                expect(",|(?=\\))", "',' or ')'");
            }
            return sizes;
        }

        /** The next token, without the space before it, or null if it has another form. */
        private String accept(String form) {
            Matcher next = Pattern.compile(SPACE + "(" + form + ")").matcher(text);
            next.region(position, text.length());
            if (!next.lookingAt()) {
                return null;
            }
            position = next.end();
            return next.group(1);
        }

        private String expect(String form, String what) {
            String token = accept(form);
            if (token == null) {
                throw file.refusal(
                        "has a header that Weft cannot read: expected %s where it says '%s'"
                                .formatted(what, SafeText.excerpt(text.substring(position))));
            }
            return token;
        }
    }
}
