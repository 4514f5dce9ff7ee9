package dev.weft.examples.llm;

import dev.weft.tensor.BlockType;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntConsumer;

/** Writes a model as a GGUF file, which llama.cpp reads too. */
final class GgufWriter {

    private static final int ALIGNMENT = 32;
    private static final int UINT32 = 4;
    private static final int INT32 = 5;
    private static final int FLOAT32 = 6;
    private static final int STRING = 8;
    private static final int ARRAY = 9;

    private static final int FP32 = 0;
    private static final Map<BlockType, Integer> TYPES =
            Map.of(BlockType.Q4_0, 2, BlockType.Q8_0, 8, BlockType.Q4_K, 12);

    private final ByteArrayOutputStream values = new ByteArrayOutputStream();
    private final Map<String, Tensor> tensors = new LinkedHashMap<>();
    private int valueCount;

    private GgufWriter() {}

    /** Replaces the file, if there is one, when all is written. */
    static void write(Model model, Path file) throws IOException {
        GgufWriter writer = new GgufWriter();
        writer.putShape(model.shape());
        writer.putTokenizer(model.tokenizer());
        writer.putTensors(model);
        Path part = file.resolveSibling(file.getFileName() + ".part");
        try {
            writer.write(part);
            Files.move(part, file, StandardCopyOption.REPLACE_EXISTING);
        } finally {
            Files.deleteIfExists(part);
        }
    }

    private void putShape(Shape shape) {
        put("general.architecture", "llama");
        put("llama.context_length", shape.longest());
        put("llama.embedding_length", shape.width());
        put("llama.block_count", shape.layers());
        put("llama.feed_forward_length", shape.hidden());
        put("llama.rope.dimension_count", shape.headWidth());
        put("llama.attention.head_count", shape.heads());
        put("llama.attention.head_count_kv", shape.keyHeads());
        put("llama.attention.layer_norm_rms_epsilon", shape.epsilon());
        put("llama.rope.freq_base", shape.turn());
    }

    private void putTokenizer(Tokenizer tokenizer) {
        put("tokenizer.ggml.model", "llama");
        putList("tokenizer.ggml.tokens", STRING, i -> putText(tokenizer.textInFile(i)), tokenizer);
        putList(
                "tokenizer.ggml.scores",
                FLOAT32,
                i -> putInt(Float.floatToRawIntBits(tokenizer.score(i))),
                tokenizer);
        putList("tokenizer.ggml.token_type", INT32, i -> putInt(tokenizer.kind(i)), tokenizer);
        put("tokenizer.ggml.bos_token_id", tokenizer.begin());
        put("tokenizer.ggml.eos_token_id", tokenizer.end());
        if (!tokenizer.template().isEmpty()) {
            put("tokenizer.chat_template", tokenizer.template());
        }
    }

    private void putTensors(Model model) {
        tensors.put("token_embd", model.embedding());
        for (int i = 0; i < model.layers().size(); i++) {
            Model.Layer layer = model.layers().get(i);
            String name = "blk." + i + ".";
            tensors.put(name + "attn_norm", Tensor.of(layer.attentionNorm()));
            tensors.put(name + "attn_q", layer.query());
            tensors.put(name + "attn_k", layer.key());
            tensors.put(name + "attn_v", layer.value());
            tensors.put(name + "attn_output", layer.attentionOut());
            tensors.put(name + "ffn_norm", Tensor.of(layer.norm()));
            tensors.put(name + "ffn_gate", layer.gate());
            tensors.put(name + "ffn_up", layer.up());
            tensors.put(name + "ffn_down", layer.down());
        }
        tensors.put("output_norm", Tensor.of(model.norm()));
        if (model.head() != model.embedding()) {
            tensors.put("output", model.head());
        }
    }

    private void write(Path file) throws IOException {
        ByteArrayOutputStream start = new ByteArrayOutputStream();
        start.writeBytes("GGUF".getBytes(StandardCharsets.US_ASCII));
        start.writeBytes(little(Integer.BYTES).putInt(3).array());
        start.writeBytes(little(Long.BYTES).putLong(tensors.size()).array());
        start.writeBytes(little(Long.BYTES).putLong(valueCount).array());
        values.writeTo(start);
        List<byte[]> rows = new ArrayList<>();
        long offset = 0;
        for (Map.Entry<String, Tensor> entry : tensors.entrySet()) {
            Tensor tensor = entry.getValue();
            boolean vector = entry.getKey().endsWith("norm");
            byte[] name = (entry.getKey() + ".weight").getBytes(StandardCharsets.UTF_8);
            ByteBuffer row = little(64 + name.length).putLong(name.length).put(name);
            row.putInt(vector ? 1 : 2).putLong(tensor.cols());
            if (!vector) {
                row.putLong(tensor.rows());
            }
            row.putInt(tensor.type() == null ? FP32 : TYPES.get(tensor.type())).putLong(offset);
            byte[] written = new byte[row.position()];
            row.flip().get(written);
            rows.add(written);
            offset += padded(tensor.bytes());
        }
        rows.forEach(start::writeBytes);
        try (FileChannel out =
                FileChannel.open(
                        file,
                        StandardOpenOption.CREATE,
                        StandardOpenOption.TRUNCATE_EXISTING,
                        StandardOpenOption.READ,
                        StandardOpenOption.WRITE)) {
            long at = padded(start.size());
            write(out, ByteBuffer.wrap(start.toByteArray()), 0);
            for (Tensor tensor : tensors.values()) {
                tensor.write(out, at);
                at += padded(tensor.bytes());
            }
            // What is between tensors and after them is zero.
            if (out.size() < at) {
                write(out, ByteBuffer.allocate(1), at - 1);
            }
        }
    }

    static void write(FileChannel out, ByteBuffer bytes, long at) throws IOException {
        long to = at;
        while (bytes.hasRemaining()) {
            to += out.write(bytes, to);
        }
    }

    private static long padded(long bytes) {
        return Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
    }

    private static ByteBuffer little(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private void putKey(String key, int type) {
        putText(key);
        putInt(type);
        valueCount++;
    }

    private void put(String key, String text) {
        putKey(key, STRING);
        putText(text);
    }

    private void put(String key, int number) {
        putKey(key, UINT32);
        putInt(number);
    }

    private void put(String key, float number) {
        putKey(key, FLOAT32);
        putInt(Float.floatToRawIntBits(number));
    }

    private void putList(String key, int type, IntConsumer one, Tokenizer tokenizer) {
        putKey(key, ARRAY);
        putInt(type);
        values.writeBytes(little(Long.BYTES).putLong(tokenizer.size()).array());
        for (int i = 0; i < tokenizer.size(); i++) {
            one.accept(i);
        }
    }

    private void putInt(int number) {
        values.writeBytes(little(Integer.BYTES).putInt(number).array());
    }

    private void putText(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        values.writeBytes(little(Long.BYTES).putLong(bytes.length).array());
        values.writeBytes(bytes);
    }
}
