package dev.weft.examples.encoder;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import java.io.IOException;
import java.io.InputStream;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.util.List;
import java.util.Map;

/** The same model by ONNX Runtime: all sentences at once, the short ones padded. */
final class OnnxReference implements AutoCloseable {

    private final OrtEnvironment environment = OrtEnvironment.getEnvironment();
    private final OrtSession session;

    OnnxReference(int threads) throws OrtException, IOException {
        try (InputStream model = Weights.class.getResourceAsStream("/all-minilm-l6-v2.onnx");
                OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
            options.setIntraOpNumThreads(threads);
            options.setOptimizationLevel(OrtSession.SessionOptions.OptLevel.ALL_OPT);
            session = environment.createSession(model.readAllBytes(), options);
        }
    }

    float[][] encode(List<int[]> sentences) throws OrtException {
        int length = sentences.stream().mapToInt(sentence -> sentence.length).max().orElseThrow();
        long[] shape = {sentences.size(), length};
        long[] ids = new long[sentences.size() * length];
        long[] mask = new long[ids.length];
        for (int i = 0; i < sentences.size(); i++) {
            for (int t = 0; t < sentences.get(i).length; t++) {
                ids[i * length + t] = sentences.get(i)[t];
                mask[i * length + t] = 1;
            }
        }
        try (OnnxTensor idTensor = tensor(ids, shape);
                OnnxTensor maskTensor = tensor(mask, shape);
                OnnxTensor typeTensor = tensor(new long[ids.length], shape);
                OrtSession.Result result =
                        session.run(
                                Map.of(
                                        "input_ids", idTensor,
                                        "attention_mask", maskTensor,
                                        "token_type_ids", typeTensor))) {
            FloatBuffer last = ((OnnxTensor) result.get(0)).getFloatBuffer();
            float[][] means = new float[sentences.size()][Weights.WIDTH];
            for (int i = 0; i < means.length; i++) {
                int count = sentences.get(i).length;
                for (int t = 0; t < count; t++) {
                    for (int col = 0; col < Weights.WIDTH; col++) {
                        means[i][col] += last.get((i * length + t) * Weights.WIDTH + col) / count;
                    }
                }
            }
            return means;
        }
    }

    private OnnxTensor tensor(long[] values, long[] shape) throws OrtException {
        return OnnxTensor.createTensor(environment, LongBuffer.wrap(values), shape);
    }

    @Override
    public void close() throws OrtException {
        session.close();
    }
}
