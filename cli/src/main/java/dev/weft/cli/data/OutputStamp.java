package dev.weft.cli.data;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.files.AtomicFile;
import dev.weft.plan.Reduction.Order;
import dev.weft.process.SafeText;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What the outputs in a data folder are: the first line of {@code outputs.txt}; the other lines are
 * their names.
 *
 * @param type the label of their type
 * @param ranks how many ranks, from 0 on, have written outputs, as digits; empty if not recorded
 * @param made what made them: the kind of data, {@link ProblemSpec#FILES}, an epilogue, or the
 *     operation that summed them and its order
 */
record OutputStamp(String type, String ranks, String made) {

    /** The assumption for outputs that no run of Weft has recorded. */
    private static final OutputStamp NO_RUN = new OutputStamp(DType.FP32.label(), "", "foreign");

    /** The outputs are not plain products. */
    private static final String EPILOGUE = "epilogue";

    /** The outputs are products of quantized inputs. */
    private static final String FP8 = "fp8";

    private static final String BLOCKS = "blocks";

    /** Writes the stamp of a run that has not ended. */
    static void writeUnfinished(Path folder, ProblemSpec spec, Set<String> names)
            throws IOException {
        write(folder, OwnFiles.UNFINISHED + " ", spec, spec.ranks(), spec.data(), names);
    }

    /**
     * Writes the stamp of a run that has ended.
     *
     * @param order the order of summation, if products are summed
     * @param finished whether an epilogue was applied to the products
     */
    static void write(
            Path folder,
            ProblemSpec spec,
            int ranks,
            Order order,
            boolean finished,
            Set<String> names)
            throws IOException {
        String made = spec.data();
        if (finished) {
            made = EPILOGUE;
        } else if (spec.fp8() != null) {
            made = FP8;
        } else if (spec.blocks() != null) {
            made = BLOCKS;
        } else if (!spec.gathers() && !made.equals(ProblemSpec.FILES)) {
            made = spec.op() + suffix(order);
        }
        write(folder, "", spec, ranks, made, names);
    }

    private static void write(
            Path folder, String state, ProblemSpec spec, int ranks, String made, Set<String> names)
            throws IOException {
        String first = state + spec.outType().label() + " " + ranks + " " + made + "\n";
        AtomicFile.write(
                folder.resolve(OwnFiles.OUTPUT_STAMP), first + String.join("\n", names) + "\n");
    }

    /** The folder's stamp; for a run that did not end, the outputs are unknown. */
    static OutputStamp read(Path folder) {
        Path stamp = folder.resolve(OwnFiles.OUTPUT_STAMP);
        if (!Files.isRegularFile(stamp)) {
            return NO_RUN;
        }
        try {
            String line = OwnFiles.readStamp(stamp).lines().findFirst().orElse("");
            if (line.startsWith(OwnFiles.UNFINISHED + " ")) {
                return NO_RUN;
            }
            String[] words = line.split(" ");
            String ranks = words.length == 3 ? words[1] : "";
            return new OutputStamp(words[0], ranks, words[words.length - 1]);
        } catch (IOException e) {
            throw misread(stamp, e);
        }
    }

    /** Refuses outputs that only the run that wrote them could verify. */
    void checkVerifiable(Path folder) {
        Map<String, String> selfVerified =
                Map.of(
                        ProblemSpec.FILES,
                        "--a and --b",
                        EPILOGUE,
                        "--epilogue",
                        FP8,
                        "--dtype fp8",
                        BLOCKS,
                        "--b-dtype q8_0, q4_0 or q4_k");
        if (selfVerified.containsKey(made)) {
            throw new UsageException(
                    "--data-dir %s: its outputs are of a run with %s, which has verified them"
                            + " itself",
                    folder, selfVerified.get(made));
        }
    }

    /** The value of {@code --op}. */
    String op() {
        String suffix = suffix(order());
        String op = made.substring(0, made.length() - suffix.length());
        return List.of(ProblemSpec.SCATTER, ProblemSpec.ALL).contains(op) ? op : ProblemSpec.GATHER;
    }

    Order order() {
        return Arrays.stream(Order.values())
                .filter(order -> order != Order.WHOLE && made.endsWith(suffix(order)))
                .findFirst()
                .orElse(Order.WHOLE);
    }

    private static String suffix(Order order) {
        return order == Order.WHOLE ? "" : "-" + order.label();
    }

    DType type(Path folder) {
        try {
            return OptionValues.type("type", SafeText.excerpt(type));
        } catch (UsageException e) {
            throw misread(folder.resolve(OwnFiles.OUTPUT_STAMP), e);
        }
    }

    /** How many ranks, from 0 on, have written outputs; all if not recorded. */
    int ranks(Path folder, int most) {
        if (ranks.isEmpty()) {
            return most;
        }
        int count = ranks.matches("[0-9]{1,4}") ? Integer.parseInt(ranks) : 0;
        if (count < 1 || count > most) {
            String why =
                    "outputs of '%s' ranks: expected 1 to %s"
                            .formatted(SafeText.excerpt(ranks), most);
            throw misread(folder.resolve(OwnFiles.OUTPUT_STAMP), new IOException(why));
        }
        return count;
    }

    static UsageException misread(Path stamp, Exception why) {
        return new UsageException(stamp + ": cannot be understood (" + why.getMessage() + ")");
    }
}
