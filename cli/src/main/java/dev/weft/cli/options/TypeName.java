package dev.weft.cli.options;

import dev.weft.tensor.DType;
import java.util.Locale;
import picocli.CommandLine.ITypeConverter;

/**
 * Reads the name of an element type in any case, also as NumPy and PyTorch call it ({@code
 * bfloat16}), and gives the name that Weft uses. Unknown names stay: options refuse them.
 */
public final class TypeName implements ITypeConverter<String> {

    @Override
    public String convert(String name) {
        String lower = name.toLowerCase(Locale.ROOT);
        try {
            return DType.of(lower).label();
        } catch (IllegalArgumentException e) {
            return lower;
        }
    }
}
