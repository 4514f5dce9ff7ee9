package dev.weft.compat;

import dev.weft.compat.Fgcc.Path;
import java.util.Objects;

/**
 * How FGCC divides rows among ranks, programs and channels. Every rank's m rows are L x C slices of
 * {@code loc} rows; the path gives their order. Immutable.
 *
 * @param path where fragments are kept
 * @param ranks R, the ranks that gather together
 * @param programs L, logical-core programs per rank
 * @param channels C, channels of the permute
 * @param loc rows of one slice
 * @param cols N, columns that this rank computes
 */
record FgccLayout(Path path, int ranks, int programs, int channels, long loc, long cols) {

    /** The source's rule: 1, but with two programs 2 for 4 to 32 ranks, and 4 for 64 and 128. */
    static int channels(int programs, int ranks) {
        if (programs != 2) {
            return 1;
        }
        return switch (ranks) {
            case 4, 8, 16, 32 -> 2;
            case 64, 128 -> 4;
            default -> 1;
        };
    }

    /**
     * The layout of {@code m} rows per rank.
     *
     * @throws IllegalArgumentException if the rows cannot be divided evenly
     */
    static FgccLayout of(Path path, int ranks, int programs, long m, long cols) {
        int channels = channels(programs, ranks);
        int slices = programs * channels;
        if (m % slices != 0) {
            throw new IllegalArgumentException(
                    ("M = %s (m = %s on each of R = %s ranks) is not divisible by R*L*C ="
                                    + " %s*%s*%s = %s: expected m to be a multiple of %s")
                            .formatted(
                                    Math.multiplyExact(m, (long) ranks),
                                    m,
                                    ranks,
                                    ranks,
                                    programs,
                                    channels,
                                    ranks * slices,
                                    slices));
        }
        return new FgccLayout(path, ranks, programs, channels, m / slices, cols);
    }

    FgccLayout on(Path other) {
        return new FgccLayout(other, ranks, programs, channels, loc, cols);
    }

    /** (R, L, C, loc, N) on the SBUF path, (R, C, L, loc, N) on the HBM path. */
    public long[] shape() {
        return path == Path.SBUF
                ? new long[] {ranks, programs, channels, loc, cols}
                : new long[] {ranks, channels, programs, loc, cols};
    }

    /** The number, among the slices of a rank's rows, of a program and channel's slice. */
    public int slice(int program, int channel) {
        Objects.checkIndex(program, programs);
        Objects.checkIndex(channel, channels);
        return path == Path.SBUF ? program * channels + channel : channel * programs + program;
    }

    /** The first row, in natural order, that a program and channel have of {@code rank}'s rows. */
    public long firstRow(int rank, int program, int channel) {
        Objects.checkIndex(rank, ranks);
        return ((long) rank * programs * channels + slice(program, channel)) * loc;
    }
}
