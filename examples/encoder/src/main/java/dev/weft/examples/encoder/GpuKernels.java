package dev.weft.examples.encoder;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuKernel;
import dev.weft.cuda.GpuStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** The kernels of encoder.cu, which says what each computes, queued on one stream. */
final class GpuKernels {

    private static final int EMBED_THREADS = 512;
    private static final int THREADS = 128;

    /** That have a row, or a tile and a head. */
    private static final int WARPS = THREADS / 32;

    private static final int ACTIVATE_THREADS = 256;
    private static final int ACTIVATE_COLUMNS = 8;

    private final GpuStream stream;
    private final GpuKernel embed;
    private final GpuKernel attend;
    private final GpuKernel addAndNormalize;
    private final GpuKernel activate;
    private final GpuKernel average;

    GpuKernels(Gpu gpu, GpuStream stream) {
        this.stream = stream;
        List<GpuKernel> kernels =
                GpuKernel.compile(
                        gpu,
                        source(),
                        "embed",
                        "attend",
                        "add_and_normalize",
                        "activate",
                        "average");
        embed = kernels.get(0);
        attend = kernels.get(1);
        addAndNormalize = kernels.get(2);
        activate = kernels.get(3);
        average = kernels.get(4);
    }

    private static String source() {
        try (InputStream in = GpuKernels.class.getResourceAsStream("encoder.cu")) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * @param firstRow of this rank in the call
     * @param to this rank's rows
     */
    void embed(DeviceMatrix tiles, GpuWeights weights, long firstRow, DeviceMatrix to) {
        embed.launch(
                stream,
                (int) tiles.rows(),
                1,
                EMBED_THREADS,
                tiles,
                weights.words(),
                weights.positions(),
                weights.types(),
                weights.embeddingNorm().scale(),
                weights.embeddingNorm().shift(),
                (int) firstRow,
                (int) to.rows(),
                to,
                to.rowPitch());
    }

    /**
     * @param queryKeyValue products of all rows with this rank's heads
     */
    void attend(
            DeviceMatrix tiles, DeviceMatrix queryKeyValue, DeviceMatrix bias, DeviceMatrix to) {
        attend.launch(
                stream,
                (int) Math.ceilDiv(tiles.rows(), WARPS),
                (int) to.cols() / Weights.HEAD_WIDTH,
                THREADS,
                tiles,
                (int) tiles.rows(),
                queryKeyValue,
                queryKeyValue.rowPitch(),
                (int) to.cols(),
                bias,
                to,
                to.rowPitch());
    }

    void addAndNormalize(
            DeviceMatrix products,
            DeviceMatrix bias,
            DeviceMatrix residual,
            GpuWeights.Norm norm,
            DeviceMatrix to) {
        addAndNormalize.launch(
                stream,
                (int) Math.ceilDiv(to.rows(), WARPS),
                1,
                THREADS,
                products,
                products.rowPitch(),
                bias,
                residual,
                residual.rowPitch(),
                norm.scale(),
                norm.shift(),
                to,
                to.rowPitch(),
                (int) to.rows());
    }

    void activate(DeviceMatrix products, DeviceMatrix bias, DeviceMatrix to) {
        long units = to.rows() * (to.cols() / ACTIVATE_COLUMNS);
        activate.launch(
                stream,
                (int) Math.ceilDiv(units, ACTIVATE_THREADS),
                1,
                ACTIVATE_THREADS,
                products,
                products.rowPitch(),
                bias,
                to,
                to.rowPitch(),
                (int) to.rows(),
                (int) to.cols());
    }

    /**
     * @param to a row for each sentence, without gaps
     */
    void average(DeviceMatrix tiles, DeviceMatrix rows, DeviceMatrix to) {
        average.launch(
                stream, (int) tiles.rows(), 1, Weights.WIDTH, tiles, rows, rows.rowPitch(), to);
    }
}
