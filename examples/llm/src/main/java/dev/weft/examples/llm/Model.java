package dev.weft.examples.llm;

import dev.weft.tensor.BlockType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.List;

/**
 * A decoder's weights, for any number of ranks of this process, and its tokenizer.
 *
 * @param embedding a row for each token
 * @param norm before the head
 * @param head gives the logits; the embedding itself in many models
 */
public record Model(
        Shape shape,
        Tensor embedding,
        List<Layer> layers,
        Matrix norm,
        Tensor head,
        Tokenizer tokenizer) {

    /** Norms are [1, width], the others [N, K]. */
    record Layer(
            Matrix attentionNorm,
            Tensor query,
            Tensor key,
            Tensor value,
            Tensor attentionOut,
            Matrix norm,
            Tensor gate,
            Tensor up,
            Tensor down) {}

    /**
     * Reads a GGUF file, or one of llama2.c.
     *
     * @param type {@code file} for the types in the file, where Weft multiplies them, else {@code
     *     q8_0}; {@code fp32}; {@code q8_0}, {@code q4_0} or {@code q4_k}
     */
    public static Model load(Path file, String type, Arena arena) throws IOException {
        if (!type.equals("file") && !type.equals("fp32") && !BlockType.isLabel(type)) {
            throw new IllegalArgumentException(
                    "weights of type '%s': expected file, fp32, q8_0, q4_0 or q4_k"
                            .formatted(type));
        }
        return GgufModel.isGguf(file)
                ? GgufModel.load(file, type, arena)
                : Llama2cModel.load(file, type, arena);
    }
}
