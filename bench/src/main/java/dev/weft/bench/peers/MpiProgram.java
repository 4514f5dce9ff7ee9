package dev.weft.bench.peers;

import dev.weft.bench.measure.Shape;
import dev.weft.bench.measure.SkippedException;
import dev.weft.bench.peers.MpiProduct.Work;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * The C program of MPI and OpenBLAS, compiled for this machine; {@link MpiProduct} is one that
 * runs. Immutable; any thread may call it.
 *
 * @param folder where it runs
 */
public record MpiProgram(Mpi mpi, OpenBlasLibrary library, Path program, Path folder) {

    /**
     * @throws SkippedException if this machine has no OpenBLAS or cannot compile MPI programs
     */
    public static MpiProgram compile(Path folder)
            throws SkippedException, IOException, InterruptedException {
        Optional<String> noOpenBlas = OpenBlasLibrary.unavailable();
        if (noOpenBlas.isPresent()) {
            throw new SkippedException("OpenBLAS: " + noOpenBlas.get());
        }
        OpenBlasLibrary library = OpenBlasLibrary.loaded();
        Mpi mpi = Mpi.find(folder);
        Path source = Programs.source(MpiProduct.SOURCE, folder);
        return new MpiProgram(mpi, library, mpi.compile(source, library.file(), folder), folder);
    }

    /** What tables call it. */
    public String name() {
        return mpi.implementation().label() + " + " + library.name();
    }

    /** Starts one rank per core of this machine. */
    public MpiProduct start(int ranks, Work work, Shape shape)
            throws IOException, InterruptedException {
        return start(mpi.startCommands(ranks), work, shape);
    }

    /** Starts one rank on each host. */
    public MpiProduct startOnHosts(int ranks, Work work, Shape shape)
            throws IOException, InterruptedException {
        return start(List.of(mpi.startOnHosts(ranks)), work, shape);
    }

    private MpiProduct start(List<List<String>> ways, Work work, Shape shape)
            throws IOException, InterruptedException {
        return new MpiProduct(ways, program, library, work, shape, folder);
    }
}
