package dev.weft.cli.data;

import dev.weft.cli.options.ProblemSpec.Block;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles.Located;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntFunction;

/**
 * Inputs in files, read into memory when they are first needed: shortening a file later does not
 * disturb a run that has read it. Thread-safe.
 */
final class FileOperands implements Operands {

    /**
     * A block of a matrix in a file.
     *
     * @param type that its elements are converted to
     */
    record Piece(Located file, DType type, Block block) {

        static Piece whole(Located file) {
            return new Piece(file, file.dtype(), new Block(0, file.rows(), 0, file.cols()));
        }

        Matrix allocate(Arena arena, DType of) {
            return Matrix.allocate(arena, of, block.rows(), block.cols());
        }

        void read(Matrix target) {
            try {
                if (type == file.dtype()) {
                    file.read(block.firstRow(), block.firstCol(), target);
                    return;
                }
                try (Arena own = Arena.ofConfined()) {
                    Matrix asInFile = allocate(own, file.dtype());
                    file.read(block.firstRow(), block.firstCol(), asInFile);
                    target.copyFrom(asInFile.converted(own, type));
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e.getMessage(), e);
            }
        }
    }

    private final IntFunction<Piece> shards;
    private final IntFunction<Piece> bs;
    private final Arena arena;
    private final Map<Piece, Matrix> kept = new ConcurrentHashMap<>();

    /**
     * Equal pieces are read once.
     *
     * @param shards where each rank's part of A is
     * @param bs where each rank's B is
     * @param arena how long they are kept
     */
    FileOperands(IntFunction<Piece> shards, IntFunction<Piece> bs, Arena arena) {
        this.shards = shards;
        this.bs = bs;
        this.arena = arena;
    }

    @Override
    public Matrix shard(int worldRank) {
        return kept.computeIfAbsent(shards.apply(worldRank), this::read);
    }

    @Override
    public Matrix b(int worldRank) {
        return kept.computeIfAbsent(bs.apply(worldRank), this::read);
    }

    private Matrix read(Piece piece) {
        Matrix matrix = piece.allocate(arena, piece.type);
        piece.read(matrix);
        return matrix;
    }

    @Override
    public void copyShard(int worldRank, Matrix target) {
        Piece piece = shards.apply(worldRank);
        Matrix own = kept.get(piece);
        if (own == null) {
            piece.read(target);
        } else {
            target.copyFrom(own);
        }
    }
}
