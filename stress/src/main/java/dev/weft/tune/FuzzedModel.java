package dev.weft.tune;

import java.nio.file.Path;

/** The reader of the model that {@code weft calibrate} keeps, opened to the fuzzer. */
public final class FuzzedModel {

    private FuzzedModel() {}

    /** Takes the kept model for this machine, or finds that another has to be measured. */
    public static void kept(Path file, String description) {
        HostModel.stored(file, description);
    }
}
