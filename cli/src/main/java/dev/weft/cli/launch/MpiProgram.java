package dev.weft.cli.launch;

import java.io.File;
import java.io.IOException;

/** Any program as ranks of mpirun. */
final class MpiProgram extends Mpirun {

    /** A terminal's signal also reaches mpirun; a second one would make it leave ranks behind. */
    private static final long BY_ITSELF_MS = 2_000;

    MpiProgram(MpiCommandLine command) throws IOException {
        super(command.builder().inheritIO().redirectInput(new File("/dev/null")));
    }

    /** Returns mpirun's exit code. */
    @Override
    int await() throws InterruptedException {
        return process().waitFor();
    }

    @Override
    void stop() {
        boolean byTerminal = TerminationSignal.received().filter("SIGTERM"::equals).isEmpty();
        if (!process().isAlive() || byTerminal && hasEnded(BY_ITSELF_MS)) {
            return;
        }
        process().destroy();
        if (!hasEnded(TERM_MS)) {
            process().descendants().forEach(ProcessHandle::destroyForcibly);
            process().destroyForcibly();
        }
    }
}
