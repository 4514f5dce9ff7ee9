package dev.weft.cli.verify;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.data.DataFolder;
import dev.weft.cli.data.FolderLock;
import dev.weft.cli.data.Operands;
import dev.weft.cli.data.ProblemRoom;
import dev.weft.cli.data.Room;
import dev.weft.cli.options.FolderName;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.options.TypeName;
import dev.weft.cli.view.Summary;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Reduction.Order;
import dev.weft.report.Promise;
import dev.weft.report.Verification;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code weft verify}: checks the output files of an earlier run, or of another program, again. */
@Command(
        name = "verify",
        description = {
            "Checks output_rank<r>.bin of every rank against golden.bin (an element is"
                    + " bad if it differs by more than 1e-3, both absolutely and relatively; at"
                    + " most 0.1%% bad; a unit of a 16-bit type is no error, and limits grow with K"
                    + " above 4096), against Weft's own unfused product bit for bit, and against"
                    + " float64.",
            "Shapes and types come from the data folder."
        },
        footer = {"", "Examples:", "  ./weft verify", "  ./weft verify --data-dir data --loose"})
public final class VerifyCommand extends WeftCommand {

    @Option(
            names = "--data-dir",
            converter = FolderName.class,
            paramLabel = "DIR",
            description = "Inputs, golden and outputs (default: ${DEFAULT-VALUE}).")
    Path dataDir = Path.of("out");

    @Option(
            names = "--out-dtype",
            converter = TypeName.class,
            paramLabel = "TYPE",
            description = "Type of the outputs (default: what the run recorded, else fp32).")
    String outDtype;

    @Option(
            names = "--engine",
            paramLabel = "NAME",
            description =
                    "The engine of the product that the outputs must equal bit for bit:"
                            + " portable for bf16 outputs of a machine without AMX, amx for those"
                            + " of one with it, auto for this machine's (default:"
                            + " ${DEFAULT-VALUE}).")
    String engine = "auto";

    @Option(
            names = "--loose",
            description =
                    "Check only golden and float64: for outputs of another program, of"
                            + " engine openblas or of a GPU.")
    boolean loose;

    @Option(names = "--quiet", description = "Print only errors.")
    boolean quiet;

    @Override
    public Integer call() throws IOException {
        OptionValues.oneOf("--engine", engine, Gemms.NAMES.toArray(String[]::new));
        DataFolder folder =
                DataFolder.existing(
                        dataDir,
                        outDtype == null ? null : OptionValues.type("--out-dtype", outDtype));
        Room.checkMemory(ProblemRoom.of(folder.spec(), null).toVerify());
        Console console = console(quiet);
        try (Arena arena = Arena.ofShared();
                FolderLock lock = new FolderLock(dataDir)) {
            lock.takeToRead();
            Gemm gemm = Gemms.byName(engine, folder.spec().aType(), folder.spec().bType());
            Progress progress = Progress.forTerminal(quiet);
            Operands operands = folder.open(arena);
            Order order = folder.order();
            // Only the run that wrote the outputs knows an algorithm's own order.
            Verifier verifier =
                    order == Order.OWN
                            ? Verifier.ofCompared(
                                    operands, folder, Promise.FLOAT64_BOUND, null, order, progress)
                            : Verifier.withEngine(
                                    operands, folder, gemm, null, order, null, progress);
            Verification found = verifier.verify(null, order != Order.OWN, true);
            boolean passed = loose ? found.passedLoosely() : found.passed();
            console.info(folder.spec().describe());
            new Summary(console).verification(found);
            console.print(passed ? "[SUCCESS] Verification PASSED." : "[FAILED] Verification.");
            return passed ? 0 : ExitCode.ofWrongResult(": " + found.describeFailure(), err());
        }
    }
}
