package dev.weft.examples.llm;

import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** A model of the architecture {@code llama} in a GGUF file: its numbers, tokenizer and weights. */
final class GgufModel {

    private static final List<String> FLOATS = List.of("fp32", "fp16", "bf16");
    private static final byte[] MAGIC = {'G', 'G', 'U', 'F'};

    private final Path path;
    private final Map<String, Object> values;
    private final String type;
    private final Arena arena;

    private GgufModel(Path path, String type, Arena arena) throws IOException {
        this.path = path;
        this.values = GgufValues.read(path);
        this.type = type;
        this.arena = arena;
    }

    static boolean isGguf(Path path) throws IOException {
        try (var in = Files.newInputStream(path)) {
            return Arrays.equals(in.readNBytes(MAGIC.length), MAGIC);
        }
    }

    static Model load(Path path, String type, Arena arena) throws IOException {
        return new GgufModel(path, type, arena).read();
    }

    private Model read() throws IOException {
        Object architecture = values.get("general.architecture");
        if (!"llama".equals(architecture)) {
            throw new IOException(
                    "%s holds a model of '%s': expected llama".formatted(path, architecture));
        }
        Tokenizer tokenizer = tokenizer();
        int heads = whole("llama.attention.head_count");
        Shape shape =
                new Shape(
                        whole("llama.embedding_length"),
                        whole("llama.feed_forward_length"),
                        whole("llama.block_count"),
                        heads,
                        (int) number("llama.attention.head_count_kv", heads),
                        tokenizer.size(),
                        whole("llama.context_length"),
                        (float) number("llama.attention.layer_norm_rms_epsilon", 1e-5),
                        (float) number("llama.rope.freq_base", 10000));
        Object scaling = values.getOrDefault("llama.rope.scaling.type", "none");
        double turned = number("llama.rope.dimension_count", shape.headWidth());
        if (!"none".equals(scaling) || turned != shape.headWidth()) {
            throw new IOException(
                    "%s scales rotary embeddings by '%s' and turns %s columns of %d: expected none, and all"
                            .formatted(path, scaling, turned, shape.headWidth()));
        }
        Tensor embedding = tensor("token_embd", shape.vocabulary(), shape.width());
        boolean own = hasTensor("output");
        List<Model.Layer> layers =
                IntStream.range(0, shape.layers())
                        .parallel()
                        .mapToObj(i -> layer("blk." + i + ".", shape))
                        .toList();
        return new Model(
                shape,
                embedding,
                layers,
                norm("output_norm", shape.width()),
                own ? tensor("output", shape.vocabulary(), shape.width()) : embedding,
                tokenizer);
    }

    private Model.Layer layer(String name, Shape shape) {
        int width = shape.width();
        int keys = shape.keyHeads() * shape.headWidth();
        try {
            // What is multiplied in one call must be of one type.
            List<Tensor> qkv =
                    alike(
                            tensor(name + "attn_q", width, width),
                            tensor(name + "attn_k", keys, width),
                            tensor(name + "attn_v", keys, width));
            List<Tensor> gateUp =
                    alike(
                            tensor(name + "ffn_gate", shape.hidden(), width),
                            tensor(name + "ffn_up", shape.hidden(), width));
            return new Model.Layer(
                    norm(name + "attn_norm", width),
                    qkv.get(0),
                    qkv.get(1),
                    qkv.get(2),
                    tensor(name + "attn_output", width, width),
                    norm(name + "ffn_norm", width),
                    gateUp.get(0),
                    gateUp.get(1),
                    tensor(name + "ffn_down", width, shape.hidden()));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The same, or all in q8_0 if their types differ. */
    private List<Tensor> alike(Tensor... tensors) {
        boolean same = Arrays.stream(tensors).map(Tensor::type).distinct().count() == 1;
        return Arrays.stream(tensors)
                .map(tensor -> same ? tensor : tensor.quantized(arena, BlockType.Q8_0))
                .toList();
    }

    private Tokenizer tokenizer() throws IOException {
        Object kind = values.get("tokenizer.ggml.model");
        if (!"llama".equals(kind)
                || !(values.get("tokenizer.ggml.tokens") instanceof List<?> tokens)
                || !(values.get("tokenizer.ggml.scores") instanceof List<?> scores)
                || tokens.size() != scores.size()) {
            throw new IOException(
                    "%s has a tokenizer of the kind '%s': expected llama, with tokens and scores"
                            .formatted(path, kind));
        }
        float[] all = new float[scores.size()];
        for (int i = 0; i < all.length; i++) {
            all[i] = ((Number) scores.get(i)).floatValue();
        }
        Object template = values.get("tokenizer.chat_template");
        int begin = (int) number("tokenizer.ggml.bos_token_id", 1);
        if (begin < 0 || begin >= all.length) {
            throw new IOException(
                    "%s begins texts with token %d of %d".formatted(path, begin, all.length));
        }
        return new Tokenizer(
                tokens.stream().map(String::valueOf).toList(),
                all,
                begin,
                (int) number("tokenizer.ggml.eos_token_id", 2),
                template == null ? "" : template.toString());
    }

    private int whole(String key) throws IOException {
        double value = number(key, -1);
        if (value < 1 || value != (int) value) {
            throw new IOException(
                    "%s says %s = %s: expected a whole number".formatted(path, key, value));
        }
        return (int) value;
    }

    private double number(String key, double otherwise) {
        return values.get(key) instanceof Number number ? number.doubleValue() : otherwise;
    }

    private boolean hasTensor(String name) throws IOException {
        try {
            locate(name, MatrixFiles.ANY, MatrixFiles.ANY);
            return true;
        } catch (IllegalArgumentException e) {
            // Others: it is there, but Weft cannot read it.
            if (e.getMessage().contains("has no tensor")) {
                return false;
            }
            throw e;
        }
    }

    private MatrixFiles.Located locate(String name, long rows, long cols) throws IOException {
        return MatrixFiles.locate(path + ":" + name + ".weight", null, rows, cols);
    }

    private Matrix norm(String name, int width) throws IOException {
        return locate(name, 1, width).read(arena);
    }

    private Tensor tensor(String name, long rows, long cols) throws IOException {
        MatrixFiles.Located found = locate(name, rows, cols);
        boolean asItIs = type.equals("file") || found.typeInFile().equals(type);
        if (asItIs && BlockType.isLabel(found.typeInFile())) {
            return Tensor.of(found.readBlocks(arena));
        }
        boolean exact = type.equals("file") && FLOATS.contains(found.typeInFile());
        if (type.equals("fp32") || exact) {
            Matrix matrix = found.read(arena);
            boolean wide = matrix.dtype() == DType.FP32;
            return Tensor.of(wide ? matrix : matrix.converted(arena, DType.FP32));
        }
        BlockType wanted = type.equals("file") ? BlockType.Q8_0 : BlockType.of(type);
        try (Arena wide = Arena.ofConfined()) {
            return Tensor.of(found.read(wide)).quantized(arena, wanted);
        }
    }
}
