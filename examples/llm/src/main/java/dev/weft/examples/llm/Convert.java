package dev.weft.examples.llm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;

/** Converts a model to a GGUF file with weights of another type: see README.md. */
public final class Convert {

    private Convert() {}

    /** See README.md. */
    public static void main(String... args) {
        if (args.length != 3) {
            System.err.println("llm: usage: Convert MODEL file|fp32|q8_0|q4_0|q4_k NEW.gguf");
            System.exit(2);
        }
        try (Arena arena = Arena.ofShared()) {
            GgufWriter.write(Model.load(Path.of(args[0]), args[1], arena), Path.of(args[2]));
        } catch (IllegalArgumentException | IOException e) {
            System.err.println("llm: " + e.getMessage());
            System.exit(2);
        }
    }
}
