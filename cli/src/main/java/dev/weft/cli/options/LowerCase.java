package dev.weft.cli.options;

import java.util.Locale;
import picocli.CommandLine.ITypeConverter;

/** Reads names in any case. */
public final class LowerCase implements ITypeConverter<String> {

    @Override
    public String convert(String name) {
        return name.toLowerCase(Locale.ROOT);
    }
}
