package dev.weft.examples.llm;

import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * A file of llama2.c: seven whole numbers, then all weights in fp32, each kind for all layers. Here
 * the tokenizer must follow.
 */
final class Llama2cModel {

    private static final int HEADER_BYTES = 7 * Integer.BYTES;
    private static final float EPSILON = 1e-5f;
    private static final float TURN = 10000;
    private static final int LONGEST_TOKEN = 1 << 10;
    private static final int BEGIN = 1;
    private static final int END = 2;
    private static final int FIRST_BYTE = 3;

    private final MemorySegment file;
    private final Shape shape;
    private final String type;
    private final Arena arena;
    private long at = HEADER_BYTES;

    private Llama2cModel(MemorySegment file, Shape shape, String type, Arena arena) {
        this.file = file;
        this.shape = shape;
        this.type = type;
        this.arena = arena;
    }

    static Model load(Path path, String type, Arena arena) throws IOException {
        MemorySegment file;
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            file = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena);
        }
        if (file.byteSize() < HEADER_BYTES) {
            throw new IOException(path + " has %d bytes".formatted(file.byteSize()));
        }
        int[] header = file.asSlice(0, HEADER_BYTES).toArray(ValueLayout.JAVA_INT_UNALIGNED);
        // A head of its own is marked by a minus.
        boolean shared = header[5] > 0;
        try {
            Shape shape =
                    new Shape(
                            header[0],
                            header[1],
                            header[2],
                            header[3],
                            header[4],
                            Math.abs(header[5]),
                            header[6],
                            EPSILON,
                            TURN);
            return new Llama2cModel(file, shape, type, arena).read(shared);
        } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
            throw new IOException(
                    path + " is no GGUF file and no file of llama2.c: " + e.getMessage(), e);
        }
    }

    private Model read(boolean shared) {
        int width = shape.width();
        int keys = shape.keyHeads() * shape.headWidth();
        Tensor embedding = tensor(1, shape.vocabulary(), width).getFirst();
        List<Matrix> attentionNorms = norms();
        List<Tensor> queries = tensors(width, width);
        List<Tensor> keyTensors = tensors(keys, width);
        List<Tensor> values = tensors(keys, width);
        List<Tensor> outs = tensors(width, width);
        List<Matrix> norms = norms();
        List<Tensor> gates = tensors(shape.hidden(), width);
        List<Tensor> downs = tensors(width, shape.hidden());
        List<Tensor> ups = tensors(shape.hidden(), width);
        Matrix norm = matrix(1, width);
        // Tables of rotations, which are computed anew.
        at += (long) shape.longest() * shape.headWidth() * Float.BYTES;
        Tensor head = shared ? embedding : tensor(1, shape.vocabulary(), width).getFirst();
        List<Model.Layer> layers =
                IntStream.range(0, shape.layers())
                        .mapToObj(
                                i ->
                                        new Model.Layer(
                                                attentionNorms.get(i),
                                                queries.get(i),
                                                keyTensors.get(i),
                                                values.get(i),
                                                outs.get(i),
                                                norms.get(i),
                                                gates.get(i),
                                                ups.get(i),
                                                downs.get(i)))
                        .toList();
        return new Model(shape, embedding, layers, norm, head, tokenizer());
    }

    private Matrix matrix(long rows, long cols) {
        long bytes = rows * cols * Float.BYTES;
        Matrix matrix = Matrix.of(file.asSlice(at, bytes), DType.FP32, rows, cols);
        at += bytes;
        return matrix;
    }

    private List<Matrix> norms() {
        return IntStream.range(0, shape.layers()).mapToObj(i -> matrix(1, shape.width())).toList();
    }

    private List<Tensor> tensors(long rows, long cols) {
        return tensor(shape.layers(), rows, cols);
    }

    private List<Tensor> tensor(int count, long rows, long cols) {
        List<Tensor> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Tensor tensor = Tensor.of(matrix(rows, cols));
            all.add(BlockType.isLabel(type) ? tensor.quantized(arena, BlockType.of(type)) : tensor);
        }
        return all;
    }

    /** The longest token's length, then of each token a score and its bytes. */
    private Tokenizer tokenizer() {
        at += Integer.BYTES;
        List<String> tokens = new ArrayList<>();
        float[] scores = new float[shape.vocabulary()];
        for (int id = 0; id < scores.length; id++) {
            scores[id] = file.get(ValueLayout.JAVA_FLOAT_UNALIGNED, at);
            int length = file.get(ValueLayout.JAVA_INT_UNALIGNED, at + Float.BYTES);
            if (length < 0 || length > LONGEST_TOKEN) {
                throw new IllegalArgumentException(
                        "token %d has %d bytes: expected a tokenizer behind the weights"
                                .formatted(id, length));
            }
            byte[] text =
                    file.asSlice(at + 2 * Integer.BYTES, length).toArray(ValueLayout.JAVA_BYTE);
            tokens.add(token(id, new String(text, StandardCharsets.UTF_8)));
            at += 2 * Integer.BYTES + length;
        }
        return new Tokenizer(tokens, scores, BEGIN, END, "");
    }

    /** Here bytes are themselves, so that those which are characters too would have two tokens. */
    private static String token(int id, String text) {
        int value = id - FIRST_BYTE;
        if (text.length() == 1 && text.charAt(0) == value) {
            return Tokenizer.BYTE.formatted(value);
        }
        return switch (id) {
            case BEGIN -> "<s>";
            case END -> "</s>";
            default -> text;
        };
    }
}
