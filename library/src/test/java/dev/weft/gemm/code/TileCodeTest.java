package dev.weft.gemm.code;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.gemm.Gemms;
import dev.weft.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

/** What is refused before machine code runs. */
class TileCodeTest {

    private static final int DEPTH = 8;

    @Test
    void wrongMemoryIsRefused() {
        assumeTrue(
                Gemms.nativeUnavailable().isEmpty(), () -> Gemms.nativeUnavailable().orElseThrow());
        Tiles tiles = TileCode.forThisMachine();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment packed = arena.allocate(2 * tiles.tileBytes(DEPTH));
            MemorySegment panel = arena.allocate(tiles.panelBytes(DType.FP32, DEPTH));
            MemorySegment sums = arena.allocate(2L * tiles.rows() * tiles.cols() * 4);
            MemorySegment heap = MemorySegment.ofArray(new byte[1 << 16]);
            refused(
                    "memory on the heap: expected memory off it",
                    () -> sum(tiles, packed, 1, tiles.rows(), heap, sums));
            refused(
                    "memory for results is read-only",
                    () -> sum(tiles, packed, 1, tiles.rows(), panel, sums.asReadOnly()));
            refused(
                    "1 rows of 2 tiles: expected all " + tiles.rows() + ", or one tile",
                    () -> sum(tiles, packed, 2, 1, panel, sums));
            refused(
                    "0 rows of a tile: expected 1 to " + tiles.rows(),
                    () -> sum(tiles, packed, 1, 0, panel, sums));
            long tile = tiles.tileBytes(DEPTH);
            refused(
                    "3 rows of %s bytes, %s bytes apart, from byte 0 on: memory has %s"
                            .formatted(tile, tile, 2 * tile),
                    () -> sum(tiles, packed, 3, tiles.rows(), panel, sums));
            refused(
                    "memory for results is read-only",
                    () -> pack(tiles, packed, packed.asReadOnly()));
            refused("memory on the heap: expected memory off it", () -> pack(tiles, heap, packed));
        }
    }

    @Test
    void wrongMemoryInPlaceIsRefused() {
        assumeTrue(
                Gemms.nativeUnavailable().isEmpty(), () -> Gemms.nativeUnavailable().orElseThrow());
        Tiles tiles = TileCode.forThisMachine();
        int depth = Tiles.LEAST_DEPTH_IN_PLACE;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment a = arena.allocate(depth * 4L);
            MemorySegment panel = arena.allocate(tiles.panelBytes(DType.FP32, depth));
            long quantum = tiles.rowsInPlace(tiles.cols());
            MemorySegment sums = arena.allocate(quantum * tiles.cols() * 4);
            refused("depth 15: expected 16 or more", () -> inPlace(tiles, a, 15, panel, sums));
            refused(
                    "1 rows of 68 bytes, 68 bytes apart, from byte 0 on: memory has 64",
                    () -> inPlace(tiles, a, 17, panel, sums));
            refused(
                    "memory for results is read-only",
                    () -> inPlace(tiles, a, depth, panel, sums.asReadOnly()));
            MemorySegment fewRows = sums.asSlice(4);
            refused(
                    "%s rows of %s bytes, %s bytes apart, from byte 0 on: memory has %s"
                            .formatted(
                                    quantum,
                                    tiles.cols() * 4,
                                    tiles.cols() * 4,
                                    fewRows.byteSize()),
                    () -> inPlace(tiles, a, depth, panel, fewRows));
            Arguments arguments = new Arguments(arena.allocate(Arguments.BYTES, 8));
            refused(
                    "engine %s keeps no panels of fp32".formatted(tiles.name()),
                    () -> tiles.widen(DType.FP32, panel, 0, depth, panel, arguments));
            long half = tiles.panelBytes(DType.BF16, depth);
            refused(
                    "1 rows of %s bytes, 0 bytes apart, from byte 0 on: memory has %s"
                            .formatted(2 * half, half),
                    () ->
                            tiles.widen(
                                    DType.BF16,
                                    panel,
                                    0,
                                    depth,
                                    panel.asSlice(0, half),
                                    arguments));
        }
    }

    private static void inPlace(
            Tiles tiles, MemorySegment a, int depth, MemorySegment panel, MemorySegment sums) {
        Arguments arguments = new Arguments(Arena.ofAuto().allocate(Arguments.BYTES, 8));
        int cols = tiles.cols();
        tiles.sumInPlace(
                false,
                DType.FP32,
                a,
                0,
                depth * 4L,
                1,
                depth,
                panel,
                0,
                cols,
                sums,
                0,
                cols * 4L,
                arguments);
    }

    private static void sum(
            Tiles tiles,
            MemorySegment packed,
            int tileCount,
            int rows,
            MemorySegment panel,
            MemorySegment sums) {
        Arguments arguments = new Arguments(Arena.ofAuto().allocate(Arguments.BYTES, 8));
        long pitch = tiles.cols() * 4L;
        int cols = tiles.cols();
        tiles.sum(
                false,
                packed,
                0,
                tileCount,
                rows,
                DEPTH,
                DType.FP32,
                panel,
                0,
                cols,
                sums,
                0,
                pitch,
                arguments);
    }

    private static void pack(Tiles tiles, MemorySegment a, MemorySegment packed) {
        Arguments arguments = new Arguments(Arena.ofAuto().allocate(Arguments.BYTES, 8));
        tiles.pack(DType.FP32, a, 0, DEPTH * 4, 1, DEPTH, packed, 0, arguments);
    }

    private static void refused(String message, Runnable call) {
        var e = assertThrows(IllegalArgumentException.class, call::run);
        assertEquals(message, e.getMessage());
    }

    @Test
    void amxSaysWhyThereIsNone() {
        assumeTrue(!System.getProperty("os.arch").equals("amd64"), "a processor that may have AMX");
        var e = assertThrows(IllegalStateException.class, TileCode::amx);
        String arch = System.getProperty("os.arch");
        assertEquals("no AMX: this processor has no amx_bf16, it is " + arch, e.getMessage());
    }
}
