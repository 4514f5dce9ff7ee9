package dev.weft.cli.options;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Reads the name of a folder; an empty one is a mistake, not the current folder. */
public final class FolderName implements ITypeConverter<Path> {

    @Override
    public Path convert(String name) {
        try {
            if (!name.isEmpty()) {
                return Path.of(name);
            }
        } catch (InvalidPathException e) {
            // refused below, with the name
        }
        throw new TypeConversionException("'" + name + "': expected the name of a folder");
    }
}
