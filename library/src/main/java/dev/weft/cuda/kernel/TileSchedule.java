package dev.weft.cuda.kernel;

import dev.weft.cuda.kernel.RowRange.Piece;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The tiles of a product in the order in which the grid takes them, and the gates that each has to
 * pass. Worker w takes tiles w, w + workers, w + 2 x workers, ... No tile is wider than one before
 * it, as the kernels want. Pure: the same arguments give the same schedule, and any thread may
 * call.
 *
 * @param tiles {@value #TILE_INTS} numbers each, as the kernels' struct Tile
 * @param gates {@value #GATE_INTS} numbers each, as the kernels' struct Gate, those of a tile by
 *     ascending K block
 * @param signals by tile: the counter that tells of its end, or -1; none if nothing waits for them
 */
public record TileSchedule(int[] tiles, int[] gates, int[] signals) {

    public static final int TILE_INTS = 8;
    public static final int GATE_INTS = 5;

    /**
     * Rows of tiles that are taken column by column, so that B's columns and A's rows are both used
     * several times while they are in L2. A long product on an H200 is at the power limit, and what
     * comes from memory again costs power: with 8 the clock is 0.5 to 1.4% higher than with 4, with
     * 16 the same as with 4.
     */
    private static final int ROWS_OF_TILES = 8;

    public int tileCount() {
        return tiles.length / TILE_INTS;
    }

    /** The gates of the tile that has most. */
    public int gatesPerTile() {
        int most = 0;
        for (int tile = 0; tile < tileCount(); tile++) {
            most = Math.max(most, gates(tile));
        }
        return most;
    }

    /**
     * Writes the tiles with rows that a call has, as they lie in it, and their signals.
     *
     * @return how many there are
     */
    int write(RowPlaces places, RowPlaces.Call call, int[] tilesTo, int[] signalsTo) {
        int count = 0;
        for (int tile = 0; tile < tileCount(); tile++) {
            int at = TILE_INTS * tile;
            int row = tiles[at];
            int sourceRow = tiles[at + 5];
            long rows = places.rows(call, sourceRow, row, tiles[at + 1]);
            if (rows == 0) {
                continue;
            }
            int into = TILE_INTS * count;
            System.arraycopy(tiles, at, tilesTo, into, TILE_INTS);
            tilesTo[into] = (int) places.row(call, row);
            tilesTo[into + 1] = (int) rows;
            tilesTo[into + 5] = (int) places.sourceRow(call, sourceRow, row);
            if (signals.length > 0) {
                signalsTo[count] = signals[tile];
            }
            count++;
        }
        return count;
    }

    /** Whether all tiles have the same rows, the first ones of C and of one source. */
    boolean isOneRowOfTiles() {
        boolean one = tileCount() > 0;
        for (int tile = 0; tile < tileCount(); tile++) {
            one &= tiles[TILE_INTS * tile] == 0 && sourceRow(tile) == 0 && rows(tile) == rows(0);
        }
        return one;
    }

    int rows(int tile) {
        return tiles[TILE_INTS * tile + 1];
    }

    int source(int tile) {
        return tiles[TILE_INTS * tile + 4];
    }

    int sourceRow(int tile) {
        return tiles[TILE_INTS * tile + 5];
    }

    int firstGate(int tile) {
        return tiles[TILE_INTS * tile + 6];
    }

    /** How many gates a tile has to pass. */
    int gates(int tile) {
        return tiles[TILE_INTS * tile + 7];
    }

    /** The flag of the chunk that a gate of a tile is about. */
    int awaitedFlag(int tile, int gate) {
        return gates[GATE_INTS * (firstGate(tile) + gate) + 4];
    }

    /**
     * One value of a counter.
     *
     * @param word its index among all flags and counters of its rank
     * @param count what the lane delivers there in a call
     * @param place what of that this value tells of, from 1 on
     */
    public record Counter(int word, int count, int place) {

        public int value(int call) {
            return (call - 1) * count + place;
        }

        /** What it holds at the end of a call. */
        public int last(int call) {
            return call * count;
        }
    }

    /** The schedule of {@code ranges}, in this order, for C of {@code n} columns. */
    public static TileSchedule of(List<RowRange> ranges, long n, TileShape shape) {
        return of(ranges, n, shape, Map.of());
    }

    /**
     * As {@link #of(List, long, TileShape)}; a tile first waits for the counter of each lane that
     * brings its pieces, and only then for their flags.
     *
     * @param counters by flag; empty if rows wait only for flags
     */
    public static TileSchedule of(
            List<RowRange> ranges, long n, TileShape shape, Map<Integer, Counter> counters) {
        Builder builder = new Builder(n, shape, counters);
        for (RowRange range : ranges) {
            builder.add(range);
        }
        return builder.build();
    }

    /**
     * A block of sums: what arrives, is multiplied and leaves together.
     *
     * @param row first row in A and C
     * @param col first column in B and C
     * @param flag that tells of the sums that it starts from; -1 if nothing arrives
     * @param signal the counter that tells of its end; -1 if nothing waits for it
     * @param narrow whether its tiles are narrow; no block after it has wide ones
     */
    public record SumBlock(
            long row, long rows, long col, long cols, int flag, int signal, boolean narrow) {}

    /** The schedule of blocks of sums, in this order. */
    public static TileSchedule ofSums(List<SumBlock> blocks, TileShape shape) {
        List<int[]> tiles = new ArrayList<>();
        List<int[]> gates = new ArrayList<>();
        List<Integer> signals = new ArrayList<>();
        for (SumBlock block : blocks) {
            int gate = gates.size();
            if (block.flag() >= 0) {
                gates.add(new int[] {0, block.flag(), 1, 0, block.flag()});
            }
            int width = block.narrow() ? shape.narrowWidth() : shape.width();
            for (long col = 0; col < block.cols(); col += width) {
                for (long from = 0; from < block.rows(); from += shape.rows()) {
                    long row = block.row() + from;
                    long rows = Math.min(shape.rows(), block.rows() - from);
                    tiles.add(
                            new Tile(
                                            row,
                                            rows,
                                            block.col() + col,
                                            width,
                                            0,
                                            row,
                                            gate,
                                            gates.size() - gate)
                                    .numbers());
                    signals.add(block.signal());
                }
            }
        }
        return new TileSchedule(
                flat(tiles), flat(gates), signals.stream().mapToInt(Integer::intValue).toArray());
    }

    private static int[] flat(List<int[]> numbers) {
        return numbers.stream().flatMapToInt(Arrays::stream).toArray();
    }

    /** One tile before it becomes numbers. */
    private record Tile(
            long row,
            long rows,
            long col,
            int width,
            int source,
            long sourceRow,
            int gate,
            int gates) {

        /** As the kernels' struct Tile. */
        int[] numbers() {
            return new int[] {
                Math.toIntExact(row),
                (int) rows,
                Math.toIntExact(col),
                width,
                source,
                Math.toIntExact(sourceRow),
                gate,
                gates
            };
        }

        Tile moved(long toCol, int toWidth) {
            return new Tile(row, rows, toCol, toWidth, source, sourceRow, gate, gates);
        }
    }

    private static final class Builder {
        private final long n;
        private final TileShape shape;
        private final List<Tile> tiles = new ArrayList<>();
        private final List<int[]> gates = new ArrayList<>();
        private final Map<Integer, Counter> counters;
        private int lastSuperRows;

        Builder(long n, TileShape shape, Map<Integer, Counter> counters) {
            this.counters = counters;
            this.n = n;
            this.shape = shape;
        }

        /** Superblocks of some rows of tiles; within one, columns outside and rows inside. */
        void add(RowRange range) {
            int width = range.narrow() ? shape.narrowWidth() : shape.width();
            int across = shape.across(n, width);
            long perSuper = Math.max(ROWS_OF_TILES, Math.ceilDiv(shape.workers(), across));
            long superRows = perSuper * shape.rows();
            for (long first = 0; first < range.rows(); first += superRows) {
                addSuper(range, first, Math.min(superRows, range.rows() - first), width);
            }
        }

        private void addSuper(RowRange range, long first, long rows, int width) {
            int count = Math.toIntExact(Math.ceilDiv(rows, shape.rows()));
            lastSuperRows = count;
            int[][] ranges = new int[count][];
            for (int i = 0; i < count; i++) {
                long from = first + (long) i * shape.rows();
                ranges[i] = addGates(range, from, Math.min(shape.rows(), first + rows - from));
            }
            for (long col = 0; col < n; col += width) {
                for (int i = 0; i < count; i++) {
                    long from = first + (long) i * shape.rows();
                    tiles.add(
                            new Tile(
                                    range.row() + from,
                                    Math.min(shape.rows(), first + rows - from),
                                    col,
                                    width,
                                    range.source(),
                                    range.sourceRow() + from,
                                    ranges[i][0],
                                    ranges[i][1]));
                }
            }
        }

        /** First gate and number of gates of some rows; tiles side by side share them. */
        private int[] addGates(RowRange range, long from, long rows) {
            int first = gates.size();
            List<Piece> pieces =
                    range.pieces().stream()
                            .filter(piece -> piece.touches(range.sourceRow() + from, rows))
                            .sorted(
                                    Comparator.comparingLong(Piece::firstCol)
                                            .thenComparingInt(Piece::flag))
                            .toList();
            Map<Integer, Piece> latest = new TreeMap<>();
            for (Piece piece : pieces) {
                Counter counter = counters.get(piece.flag());
                if (counter != null) {
                    latest.merge(counter.word(), piece, this::later);
                }
            }
            for (Piece piece : latest.values()) {
                Counter counter = counters.get(piece.flag());
                int offset = counter.place() - counter.count();
                addGate(0, counter.word(), counter.count(), offset, piece.flag());
            }
            for (Piece piece : pieces) {
                int kBlock = Math.toIntExact(piece.firstCol() / TileShape.K_BLOCK);
                addGate(kBlock, piece.flag(), 1, 0, piece.flag());
            }
            return new int[] {first, gates.size() - first};
        }

        /** Which of two pieces that one lane brings comes last. */
        private Piece later(Piece x, Piece y) {
            return counters.get(x.flag()).place() > counters.get(y.flag()).place() ? x : y;
        }

        private void addGate(int kBlock, int word, int perCall, int offset, int flag) {
            gates.add(new int[] {kBlock, word, perCall, offset, flag});
        }

        TileSchedule build() {
            evenOut();
            List<int[]> numbers = tiles.stream().map(Tile::numbers).toList();
            return new TileSchedule(flat(numbers), flat(gates), new int[0]);
        }

        /**
         * If the last round of full tiles would leave workers idle, its tiles are cut narrower, so
         * that more workers take part and the round is shorter: to half the width if that many fit,
         * else to three quarters. 4096 x 16384 x 6656 took 5% less so on an H200, 16384 x 4096 x
         * 4096 took 2% less.
         */
        private void evenOut() {
            int rest = tiles.size() % shape.workers();
            boolean narrower = shape.narrowWidth() < shape.width();
            if (rest == 0
                    || !narrower
                    || tiles.getLast().width() < shape.width()
                    || waitsWithin(tiles.getLast())) {
                return;
            }
            if (rest * 2 <= shape.workers()) {
                List<Tile> last = tiles.subList(tiles.size() - rest, tiles.size());
                List<Tile> halves = new ArrayList<>();
                for (Tile tile : last) {
                    long end = Math.min(n, tile.col() + tile.width());
                    for (long col = tile.col(); col < end; col += shape.narrowWidth()) {
                        halves.add(tile.moved(col, shape.narrowWidth()));
                    }
                }
                last.clear();
                tiles.addAll(halves);
            } else {
                cutLastColumns(rest);
            }
        }

        /**
         * Whether a tile waits for slices of its columns. A worker must not have two such tiles:
         * the second would start when the last slice has come.
         */
        private boolean waitsWithin(Tile tile) {
            return tile.gates() > 0 && gates.get(tile.gate() + tile.gates() - 1)[0] > 0;
        }

        /** The last columns of tiles of the last superblock, at least {@code rest} tiles. */
        private void cutLastColumns(int rest) {
            long left = Math.ceilDiv(rest, lastSuperRows);
            long firstCol = (shape.across(n, shape.width()) - left) * shape.width();
            int first = Math.toIntExact(tiles.size() - left * lastSuperRows);
            long across = Math.ceilDiv(n - firstCol, shape.middleWidth());
            long lastRound = across * lastSuperRows - (left * lastSuperRows - rest);
            if (firstCol < 0 || lastRound > shape.workers()) {
                return;
            }
            List<Tile> column = List.copyOf(tiles.subList(first, first + lastSuperRows));
            tiles.subList(first, tiles.size()).clear();
            for (long col = firstCol; col < n; col += shape.middleWidth()) {
                for (Tile tile : column) {
                    tiles.add(tile.moved(col, shape.middleWidth()));
                }
            }
        }
    }
}
