package dev.weft.examples.llm;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuKernel;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaAllGatherMatmulBuilder;
import dev.weft.cuda.op.CudaMatmulReduce;
import dev.weft.cuda.op.CudaOperator;
import dev.weft.cuda.op.CudaWeights;
import dev.weft.examples.llm.Attention.Row;
import dev.weft.fabric.Fabric;
import dev.weft.op.AllGather;
import dev.weft.op.Epilogue;
import dev.weft.op.Operator.PendingCall;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.CallLog;
import dev.weft.trace.View;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * One rank of a decoder on a GPU, which ranks may share: weights and activations are bf16, sums and
 * the rows between layers fp32. A call is queued as a whole. Alone, a rank has no peers to wait
 * for, and launches a step of few tokens as a CUDA graph. Used by one thread at a time.
 */
final class GpuDecoder implements Decoder {

    /** GPUs sum so many k at a time: hidden columns are cut there, so that the bits stay. */
    private static final int SUM_QUANTUM = 16;

    private static final int THREADS = 128;

    /** Columns that a thread reads of a key at once. */
    private static final int HEAD_UNIT = 8;

    /** Rows of a call that is worth a graph of its own. */
    private static final int MOST_ROWS_OF_GRAPHS = 32;

    /** Behind the columns of a row that comes in: its chat, and its place there. */
    private static final int NUMBERS = 4;

    private final Fabric fabric;
    private final Model model;
    private final Shape shape;
    private final Split split;
    private final Gpu gpu;
    private final int longest;
    private final int chats;
    private final List<AutoCloseable> opened = new ArrayList<>();
    private final List<Layer> layers = new ArrayList<>();
    private final GpuStream stream;
    private final GpuKernel norm;
    private final GpuKernel turnAndKeep;
    private final GpuKernel attend;

    /** Embeddings of all rows of a call, with their numbers. */
    private final Matrix entering;

    private final DeviceMatrix entered;
    private final DeviceMatrix turns;
    private final DeviceMatrix lastNorm;
    private final CudaWeights head;
    private final Matrix logits;
    private final AllGather<Matrix> gather;
    private final List<PendingCall<DeviceMatrix>> pending = new ArrayList<>();

    /** For calls of any rows. */
    private final Pass pass;

    /** By number of rows, each of which wants logits: an operator in a graph has these alone. */
    private final Map<Integer, Pass> passes = new HashMap<>();

    /** The rows of the call under way. */
    private Shards tokens;

    /** Collective. */
    GpuDecoder(Fabric fabric, Model model, Decoder.Capacity capacity, Gpu gpu) {
        this.fabric = fabric;
        this.model = model;
        this.shape = model.shape();
        this.gpu = gpu;
        this.longest = Math.min(capacity.longest(), shape.longest());
        this.chats = capacity.chats();
        this.split = Split.of(model, fabric.size(), isAlone() ? 1 : SUM_QUANTUM);
        if (shape.headWidth() > THREADS || shape.headWidth() % HEAD_UNIT != 0) {
            throw new IllegalArgumentException(
                    "heads of %d columns on a GPU: expected a multiple of %d, at most %d"
                            .formatted(shape.headWidth(), HEAD_UNIT, THREADS));
        }
        gpu.bind();
        try {
            stream = open(GpuStream.create());
            List<GpuKernel> kernels =
                    GpuKernel.compile(gpu, source(), "rms_norm", "turn_and_keep", "attend");
            norm = kernels.get(0);
            turnAndKeep = kernels.get(1);
            attend = kernels.get(2);
            Arena arena = Arena.ofAuto();
            entering = Matrix.allocate(arena, DType.FP32, capacity.rows(), shape.width() + NUMBERS);
            entered = zeroed(DType.FP32, entering.rows(), entering.cols());
            turns = uploaded(new Attention.Rotation(shape, longest).table(arena));
            lastNorm = uploaded(model.norm());
            for (Model.Layer layer : model.layers()) {
                layers.add(new Layer(layer));
            }
            head = weights(part(model.head(), split.vocabulary()));
            pass = new Pass(Shards.even(capacity.rows(), fabric.size()));
            long columns = split.vocabulary().rows(fabric.rank());
            logits = Matrix.allocate(arena, DType.FP32, capacity.rows(), columns);
            gather =
                    open(
                            AllGather.rows(
                                    fabric,
                                    split.vocabulary(),
                                    1,
                                    DType.FP32,
                                    fabric.sharesMemory()
                                            ? Algorithm.MESH_PULL
                                            : Algorithm.MESH_PUSH));
        } catch (Throwable e) {
            try {
                close();
            } catch (RuntimeException also) {
                e.addSuppressed(also);
            }
            throw e;
        }
    }

    private static String source() {
        try (InputStream in = GpuDecoder.class.getResourceAsStream("decoder.cu")) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private <T extends AutoCloseable> T open(T resource) {
        opened.add(resource);
        return resource;
    }

    private DeviceMatrix zeroed(DType type, long rows, long cols) {
        long bytes = DeviceMatrix.alignedBytes(type, rows, cols);
        return DeviceMatrix.in(open(DeviceBuffer.zeroed(bytes, stream)), type, rows, cols);
    }

    private DeviceMatrix uploaded(Matrix matrix) {
        DeviceMatrix device = zeroed(matrix.dtype(), matrix.rows(), matrix.cols());
        device.upload(matrix, stream);
        return device;
    }

    private Tensor part(Tensor whole, Shards parts) {
        return whole.rows(parts.firstRow(fabric.rank()), parts.rows(fabric.rank()));
    }

    /** In bf16, one below the other. */
    private CudaWeights weights(Tensor... parts) {
        long rows = 0;
        for (Tensor part : parts) {
            rows += part.rows();
        }
        try (Arena arena = Arena.ofShared()) {
            Matrix all = Matrix.allocate(arena, DType.BF16, rows, parts[0].cols());
            long first = 0;
            for (Tensor part : parts) {
                part.round(all.rows(first, part.rows()));
                first += part.rows();
            }
            return open(CudaWeights.copyOf(gpu, all, true));
        }
    }

    private boolean isAlone() {
        return fabric.size() == 1;
    }

    /** A gather and product; with two Bs the epilogue joins their products. */
    private CudaAllGatherMatmul gathering(
            Shards most, Epilogue epilogue, DType out, CudaWeights... sides) {
        CudaAllGatherMatmulBuilder builder =
                isAlone()
                        ? CudaAllGatherMatmul.withHostPeers(gpu, 0)
                        : CudaAllGatherMatmul.on(fabric, gpu);
        builder.a(most, DType.BF16).output(out).epilogue(epilogue);
        for (CudaWeights side : sides) {
            builder.b(side);
        }
        boolean reaches = isAlone() || fabric.sharesMemory();
        return open(
                builder.algorithm(reaches ? Algorithm.MESH_PULL : Algorithm.MESH_PUSH).prepare());
    }

    /** Products that are summed over ranks. */
    private CudaOperator scattering(
            Shards most, Shards parts, Epilogue epilogue, CudaWeights weights) {
        if (isAlone()) {
            return gathering(most, epilogue, DType.FP32, weights);
        }
        return open(
                CudaMatmulReduce.on(fabric, gpu, false)
                        .a(most, parts, DType.BF16)
                        .b(weights)
                        .output(DType.FP32)
                        .epilogue(epilogue)
                        .algorithm(fabric.sharesMemory() ? Reduction.DIRECT : Reduction.CHAIN)
                        .prepare());
    }

    @Override
    public int longest() {
        return longest;
    }

    @Override
    public float[][] call(CallLog log, int[] ids, Row[] rows, int... wanted) {
        if (log != null) {
            throw new UnsupportedOperationException("a log of calls on a GPU: expected null");
        }
        gpu.bind();
        tokens = Shards.even(ids.length, fabric.size());
        enter(ids, rows);
        boolean suitsGraph =
                isAlone() && wanted.length == ids.length && ids.length <= MOST_ROWS_OF_GRAPHS;
        Pass used = suitsGraph ? passes.computeIfAbsent(ids.length, this::passOf) : pass;
        if (used == pass) {
            used.queue(wanted);
        } else {
            used.launch(wanted);
        }
        DeviceMatrix part = used.logits(wanted.length);
        Matrix found = logits.rows(0, wanted.length);
        part.download(found, stream);
        awaitAll();
        return gathered(found);
    }

    private void enter(int[] ids, Row[] rows) {
        int first = (int) tokens.firstRow(fabric.rank());
        int end = first + (int) tokens.rows(fabric.rank());
        Matrix used = entering.rows(0, ids.length);
        Matrix embeddings = used.block(0, ids.length, 0, shape.width());
        for (int i = 0; i < ids.length; i++) {
            if (first <= i && i < end) {
                model.embedding().row(ids[i], embeddings, i);
            }
            // The GPU would write to another's memory.
            used.set(i, shape.width(), Objects.checkIndex(rows[i].chat(), chats));
            used.set(i, shape.width() + 1, Objects.checkIndex(rows[i].place(), longest));
        }
        entered.rows(0, ids.length).upload(used, stream);
    }

    /** Operators for these rows alone; those for any rows if the GPU has no memory for more. */
    private Pass passOf(int rows) {
        int before = opened.size();
        try {
            return new Pass(Shards.of(rows));
        } catch (RuntimeException e) {
            closeFrom(before);
            tokens = Shards.of(rows);
            return pass;
        }
    }

    private void awaitAll() {
        pending.forEach(PendingCall::await);
        pending.clear();
    }

    /** How many of the wanted rows each rank has. */
    private Shards asked(int[] wanted) {
        long[] perRank = new long[fabric.size()];
        for (int row : wanted) {
            int rank = 0;
            while (tokens.firstRow(rank) + tokens.rows(rank) <= row) {
                rank++;
            }
            perRank[rank]++;
        }
        return Shards.of(perRank);
    }

    /** This rank's rows of what has come in. */
    private DeviceMatrix ownColumns() {
        int rank = fabric.rank();
        return new DeviceMatrix(
                entered.at(tokens.firstRow(rank), 0),
                DType.FP32,
                tokens.rows(rank),
                shape.width(),
                entered.rowPitch());
    }

    private void normalize(DeviceMatrix x, DeviceMatrix weight, DeviceMatrix to) {
        norm.launch(
                stream,
                1,
                (int) x.rows(),
                THREADS,
                x,
                x.rowPitch(),
                to,
                to.rowPitch(),
                weight,
                shape.width(),
                shape.epsilon());
    }

    private void start(CudaOperator operator, DeviceMatrix shard, Shards rows) {
        pending.add(operator.start(shard, rows, stream, View.PIPELINED));
    }

    /** All ranks' columns of each row. */
    private float[][] gathered(Matrix part) {
        float[][] all = new float[(int) part.rows()][shape.vocabulary()];
        for (int i = 0; i < all.length; i++) {
            Matrix whole = part.rows(i, 1);
            if (!isAlone()) {
                Matrix shard = gather.nextShard();
                MemorySegment.copy(
                        part.data(), part.offset(i, 0), shard.data(), 0, 4 * part.cols());
                whole = gather.call(shard);
            }
            MemorySegment.copy(
                    whole.data(), ValueLayout.JAVA_FLOAT, 0, all[i], 0, shape.vocabulary());
        }
        return all;
    }

    @Override
    public void close() {
        gpu.bind();
        closeFrom(0);
    }

    /** The latest first, and all of them, whatever one of them throws. */
    private void closeFrom(int first) {
        IllegalStateException failure = null;
        for (AutoCloseable one : opened.subList(first, opened.size()).reversed()) {
            try {
                one.close();
            } catch (Exception e) {
                if (failure == null) {
                    failure = new IllegalStateException(e);
                } else {
                    failure.addSuppressed(e);
                }
            }
        }
        opened.subList(first, opened.size()).clear();
        if (failure != null) {
            throw failure;
        }
    }

    /** What a rank has of a layer. */
    private final class Layer {

        private final int queries;
        private final int keys;
        private final DeviceMatrix keptKeys;
        private final DeviceMatrix keptValues;
        private final DeviceMatrix attentionNorm;
        private final DeviceMatrix hiddenNorm;

        /** One B, so that there is one kernel. */
        private final CudaWeights queryKeyValue;

        private final CudaWeights attentionOut;
        private final CudaWeights gate;
        private final CudaWeights up;
        private final CudaWeights down;

        Layer(Model.Layer layer) {
            int rank = fabric.rank();
            int width = shape.headWidth();
            queries = split.headCount(rank);
            keys = split.keyCount(rank);
            long firstKey = (long) split.firstKey(rank) * width;
            long columns = (long) keys * width;
            keptKeys = zeroed(DType.BF16, (long) chats * keys * longest, width);
            keptValues = zeroed(DType.BF16, (long) chats * keys * longest, width);
            attentionNorm = uploaded(layer.attentionNorm());
            hiddenNorm = uploaded(layer.norm());
            queryKeyValue =
                    weights(
                            part(layer.query(), split.heads()),
                            layer.key().rows(firstKey, columns),
                            layer.value().rows(firstKey, columns));
            attentionOut = weights(columns(layer.attentionOut(), split.heads()));
            gate = weights(part(layer.gate(), split.hidden()));
            up = weights(part(layer.up(), split.hidden()));
            down = weights(columns(layer.down(), split.hidden()));
        }

        private Tensor columns(Tensor whole, Shards parts) {
            return whole.cols(parts.firstRow(fabric.rank()), parts.rows(fabric.rank()));
        }

        private void attention(DeviceMatrix qkv, DeviceMatrix to) {
            launch(turnAndKeep, queries + keys, qkv, qkv.rowPitch(), keptKeys, keptValues);
            launch(attend, queries, qkv, qkv.rowPitch(), keptKeys, keptValues, to, to.rowPitch());
        }

        private void launch(GpuKernel kernel, int blocks, Object... more) {
            List<Object> arguments =
                    new ArrayList<>(
                            List.of(
                                    queries,
                                    keys,
                                    shape.headWidth(),
                                    shape.sharers(),
                                    split.firstHead(fabric.rank()),
                                    split.firstKey(fabric.rank()),
                                    longest,
                                    entered.at(0, shape.width()),
                                    entered.rowPitch(),
                                    turns));
            arguments.addAll(List.of(more));
            int rows = (int) tokens.totalRows();
            kernel.launch(stream, blocks, rows, THREADS, arguments.toArray());
        }
    }

    /** The operators of all layers, for up to so many rows. */
    private final class Pass {

        private final List<LayerPass> layerPasses = new ArrayList<>();
        private final CudaOperator logits;
        private GpuStream.Graph graph;

        Pass(Shards most) {
            for (Layer layer : layers) {
                layerPasses.add(new LayerPass(layer, most));
            }
            logits = gathering(most, Epilogue.none(), DType.FP32, head);
        }

        /** All layers and the logits of the rows that are wanted. */
        void queue(int... wanted) {
            DeviceMatrix x = ownColumns();
            for (LayerPass layer : layerPasses) {
                x = layer.queue(x);
            }
            Shards asked = asked(wanted);
            DeviceMatrix to = logits.nextShard(asked);
            int first = (int) asked.firstRow(fabric.rank());
            for (int i = 0; i < to.rows(); i++) {
                long row = wanted[first + i] - tokens.firstRow(fabric.rank());
                normalize(x.rows(row, 1), lastNorm, to.rows(i, 1));
            }
            start(logits, to, asked);
        }

        /**
         * As a graph; the first time it is also queued as usual, so that nothing is left to load.
         */
        void launch(int... wanted) {
            if (graph == null) {
                queue(wanted);
                stream.synchronize();
                awaitAll();
                graph = open(stream.capture(() -> queue(wanted)));
                pending.clear();
            }
            graph.launch(stream);
        }

        DeviceMatrix logits(int rows) {
            return logits.product(0).rows(0, rows);
        }
    }

    private final class LayerPass {

        private final Layer layer;
        private final CudaAllGatherMatmul queryKeyValue;
        private final CudaOperator attentionOut;
        private final CudaAllGatherMatmul gateUp;
        private final CudaOperator down;

        /** What is added to the sums of the call under way. */
        private DeviceMatrix residual;

        LayerPass(Layer layer, Shards most) {
            this.layer = layer;
            tokens = most;
            residual = ownColumns();
            Epilogue sum = Epilogue.none().residual(() -> residual);
            queryKeyValue = gathering(most, Epilogue.none(), DType.FP32, layer.queryKeyValue);
            attentionOut = scattering(most, split.heads(), sum, layer.attentionOut);
            gateUp = gathering(most, Epilogue.none().swiglu(), DType.BF16, layer.gate, layer.up);
            down = scattering(most, split.hidden(), sum, layer.down);
        }

        /** This rank's rows, valid until the next call. */
        DeviceMatrix queue(DeviceMatrix x) {
            DeviceMatrix shard = queryKeyValue.nextShard(tokens);
            normalize(x, layer.attentionNorm, shard);
            start(queryKeyValue, shard, tokens);
            DeviceMatrix mixed = attentionOut.nextShard(tokens);
            layer.attention(queryKeyValue.product(0), mixed);
            residual = x;
            start(attentionOut, mixed, tokens);
            DeviceMatrix sums = own(attentionOut);
            shard = gateUp.nextShard(tokens);
            normalize(sums, layer.hiddenNorm, shard);
            start(gateUp, shard, tokens);
            residual = sums;
            start(down, gateUp.product(0).rows(0, tokens.totalRows()), tokens);
            return own(down);
        }

        private DeviceMatrix own(CudaOperator operator) {
            return operator.product(0).rows(0, tokens.rows(fabric.rank()));
        }
    }
}
