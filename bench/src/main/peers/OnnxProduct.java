import module java.base;

import ai.onnxruntime.*;

/**
 * One product per line of input, by ONNX Runtime's MatMulNBits, stepped by weft bench.
 *
 * <pre>
 * OnnxProduct.java FOLDER M N K THREADS q8_0|q4_0
 * </pre>
 *
 * FOLDER has a.bin (fp32, [M, K]) and b.bin (GGUF's blocks, [N, K]), which become the operator's own
 * form. Answers "ready NAME" first, then every line: "s" with the nanoseconds of one product, "c"
 * with "ok" once the product is in c.bin.
 */
static final int BLOCK = 32;

/** Rows of A are quantized to int8, as Weft does it. */
static final int INT8 = 4;

static final int FLOAT_TYPE = 1;
static final int BYTE_TYPE = 2;

void main(String[] args) throws Exception {
    Path folder = Path.of(args[0]);
    int m = Integer.parseInt(args[1]);
    int n = Integer.parseInt(args[2]);
    int k = Integer.parseInt(args[3]);
    int bits = args[5].equals("q8_0") ? 8 : 4;
    var environment = OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_ERROR);
    var options = new OrtSession.SessionOptions();
    options.setIntraOpNumThreads(Integer.parseInt(args[4]));
    options.setInterOpNumThreads(1);
    // Its idle threads must not spin while others are measured.
    options.addConfigEntry("session.intra_op.allow_spinning", "0");
    byte[] model = model(m, n, k, bits, Files.readAllBytes(folder.resolve("b.bin")));
    var session = environment.createSession(model, options);
    var a = ByteBuffer.allocateDirect(m * k * Float.BYTES).order(ByteOrder.nativeOrder());
    a.put(Files.readAllBytes(folder.resolve("a.bin"))).flip();
    var c = ByteBuffer.allocateDirect(m * n * Float.BYTES).order(ByteOrder.nativeOrder());
    var inputs = Map.of("A", OnnxTensor.createTensor(environment, a.asFloatBuffer(), new long[] {m, k}));
    var outputs = Map.of("C", OnnxTensor.createTensor(environment, c.asFloatBuffer(), new long[] {m, n}));
    IO.println("ready ONNX Runtime " + environment.getVersion());
    for (String line = IO.readln(); line != null; line = IO.readln()) {
        if (line.startsWith("s")) {
            long startNs = System.nanoTime();
            session.run(inputs, Set.of(), outputs).close();
            IO.println(System.nanoTime() - startNs);
        } else {
            byte[] bytes = new byte[c.capacity()];
            c.get(0, bytes);
            Files.write(folder.resolve("c.bin"), bytes);
            IO.println("ok");
        }
    }
}

/** A model of one MatMulNBits, in ONNX's protocol buffers. */
static byte[] model(int m, int n, int k, int bits, byte[] blocks) {
    int perRow = k / BLOCK;
    int bytes = BLOCK * bits / 8;
    byte[] numbers = new byte[n * perRow * bytes];
    var scales = ByteBuffer.allocate(n * perRow * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    var from = ByteBuffer.wrap(blocks).order(ByteOrder.LITTLE_ENDIAN);
    for (int block = 0; block < n * perRow; block++) {
        int at = block * (Short.BYTES + bytes);
        scales.putFloat(Float.float16ToFloat(from.getShort(at)));
        for (int i = 0; i < bytes; i++) {
            numbers[block * bytes + i] = (byte) (bits == 8
                    ? from.get(at + 2 + i) + 128
                    : four(from, at + 2, 2 * i) | four(from, at + 2, 2 * i + 1) << 4);
        }
    }
    var node = new Message().text(1, "A").text(1, "B").text(1, "scales").text(2, "C").text(4, "MatMulNBits")
            .text(7, "com.microsoft");
    Map.of("K", k, "N", n, "bits", bits, "block_size", BLOCK, "accuracy_level", INT8)
            .forEach((name, value) ->
                    node.message(5, new Message().text(1, name).number(3, value).number(20, 2)));
    var b = new Message().number(1, n).number(1, perRow).number(1, bytes).number(2, BYTE_TYPE).text(8, "B")
            .bytes(9, numbers);
    var ofB = new Message().number(1, (long) n * perRow).number(2, FLOAT_TYPE).text(8, "scales")
            .bytes(9, scales.array());
    var graph = new Message().message(1, node).text(2, "product").message(5, b).message(5, ofB)
            .message(11, value("A", m, k)).message(12, value("C", m, n));
    return new Message().number(1, 10)
            .message(7, graph)
            .message(8, new Message().text(1, "").number(2, 21))
            .message(8, new Message().text(1, "com.microsoft").number(2, 1))
            .out.toByteArray();
}

/** Element {@code i} of a block of 4 bits, in which i and i + 16 share a byte. */
static int four(ByteBuffer blocks, int at, int i) {
    return blocks.get(at + i % 16) >> 4 * (i / 16) & 15;
}

static Message value(String name, long rows, long cols) {
    var shape = new Message().message(1, new Message().number(1, rows)).message(1, new Message().number(1, cols));
    return new Message().text(1, name)
            .message(2, new Message().message(1, new Message().number(1, FLOAT_TYPE).message(2, shape)));
}

/** Writes the fields of a message by their numbers. */
static final class Message {

    final ByteArrayOutputStream out = new ByteArrayOutputStream();

    Message number(int field, long value) {
        variable(field << 3);
        variable(value);
        return this;
    }

    Message bytes(int field, byte[] value) {
        variable(field << 3 | 2);
        variable(value.length);
        out.writeBytes(value);
        return this;
    }

    Message text(int field, String value) {
        return bytes(field, value.getBytes(StandardCharsets.UTF_8));
    }

    Message message(int field, Message value) {
        return bytes(field, value.out.toByteArray());
    }

    private void variable(long value) {
        for (long rest = value; ; rest >>>= 7) {
            if (rest < 128) {
                out.write((int) rest);
                return;
            }
            out.write((int) (rest & 127 | 128));
        }
    }
}
