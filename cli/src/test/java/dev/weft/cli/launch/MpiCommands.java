package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assumptions.abort;

import dev.weft.cli.ChildProcess;
import dev.weft.ffi.MpiFamily;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;

/** Commands under mpirun, with their files in a folder of the test. */
abstract class MpiCommands {

    /** Each rank is a host of its own. */
    static final String HOSTS_OF_ONE = "-Dweft.mpi.ranks.per.host=1";

    @TempDir Path folder;

    /** The family's mpirun; without one the test is skipped. */
    static String mpirun(MpiFamily family) {
        boolean open = family == MpiFamily.OPEN_MPI;
        List<String> names =
                open ? List.of("mpirun.openmpi", "mpirun") : List.of("mpirun.mpich", "mpirun");
        for (String name : names) {
            for (String bin : System.getenv("PATH").split(File.pathSeparator)) {
                Path program = Path.of(bin, name);
                if (Files.isExecutable(program)
                        && version(program).contains(open ? "Open MPI" : "HYDRA")) {
                    return program.toString();
                }
            }
        }
        return abort("no mpirun of " + family.label() + " on the path");
    }

    private static String version(Path program) {
        try {
            Process process = new ProcessBuilder(program.toString(), "--version").start();
            return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new AssertionError(program + " cannot be started", e);
        }
    }

    ChildProcess.Setup weft(String arguments) {
        String all = "run " + arguments.strip() + " --data-dir " + folder.resolve("out");
        List<String> command = new ArrayList<>(List.of(ChildProcess.SCRIPT.toString()));
        command.addAll(List.of(all.split(" ")));
        ChildProcess.Setup setup = ChildProcess.of(folder, command);
        setup.builder().environment().remove("WEFT_MPI_LIBRARY");
        return setup;
    }

    /** The command starts mpirun. */
    ChildProcess.Setup launch(MpiFamily family, String arguments) {
        return weft("--launcher mpi " + arguments).environment("WEFT_MPIRUN", mpirun(family));
    }
}
