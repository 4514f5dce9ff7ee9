package dev.weft.examples.llm;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * llama.cpp, as it is inside de.kherud:llama 4.2.0, with keys and values in fp32. For one thread.
 */
@SuppressWarnings("restricted")
final class LlamaCpp implements AutoCloseable {

    private static final MemoryLayout POINTER = ValueLayout.ADDRESS;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;

    // Structures of that version, of which only these members are changed.
    private static final MemoryLayout MODEL_PARAMETERS = structure(64);
    private static final MemoryLayout CONTEXT_PARAMETERS = structure(120);
    private static final int TOKENS_OF_CONTEXT = 0;
    private static final int TOKENS_OF_CALL = 4;
    private static final int TOKENS_OF_PART = 8;
    private static final int THREADS = 16;
    private static final int THREADS_OF_PROMPT = 20;
    private static final int TYPE_OF_KEYS = 88;
    private static final int TYPE_OF_VALUES = 92;
    private static final int FP16 = 1;
    private static final int FP32 = 0;
    private static final MemoryLayout BATCH = structure(56);
    private static final int LOGITS_OF_BATCH = 48;

    private final Arena arena = Arena.ofShared();
    private final SymbolLookup library;
    private final MemorySegment model;
    private final MemorySegment context;
    private final MemorySegment vocabulary;
    private final int tokens;
    private final MethodHandle decode;
    private final MethodHandle logits;
    private final MethodHandle batch;

    LlamaCpp(Path file, int threads, int longest) {
        library = SymbolLookup.libraryLookup(unpacked(), arena);
        silence();
        run(() -> function("llama_backend_init", null).invoke());
        var parameters =
                get(
                        () ->
                                function("llama_model_default_params", MODEL_PARAMETERS)
                                        .invokeWithArguments(arena));
        model =
                get(
                        () ->
                                function(
                                                "llama_model_load_from_file",
                                                POINTER,
                                                POINTER,
                                                MODEL_PARAMETERS)
                                        .invokeWithArguments(
                                                arena.allocateFrom(file.toString()), parameters));
        if (model.equals(MemorySegment.NULL)) {
            throw new IllegalStateException("llama.cpp cannot load " + file);
        }
        var wanted =
                get(
                        () ->
                                function("llama_context_default_params", CONTEXT_PARAMETERS)
                                        .invokeWithArguments(arena));
        if (wanted.get(INT, TYPE_OF_KEYS) != FP16 || wanted.get(INT, TYPE_OF_VALUES) != FP16) {
            throw new IllegalStateException("another version of llama.cpp");
        }
        wanted.set(INT, TYPE_OF_KEYS, FP32);
        wanted.set(INT, TYPE_OF_VALUES, FP32);
        wanted.set(INT, TOKENS_OF_CONTEXT, longest);
        wanted.set(INT, TOKENS_OF_CALL, longest);
        wanted.set(INT, TOKENS_OF_PART, Math.min(longest, 512));
        wanted.set(INT, THREADS, threads);
        wanted.set(INT, THREADS_OF_PROMPT, threads);
        context =
                get(
                        () ->
                                function(
                                                "llama_init_from_model",
                                                POINTER,
                                                POINTER,
                                                CONTEXT_PARAMETERS)
                                        .invokeWithArguments(model, wanted));
        vocabulary = get(() -> function("llama_model_get_vocab", POINTER, POINTER).invoke(model));
        MethodHandle size = function("llama_vocab_n_tokens", INT, POINTER);
        int[] count = new int[1];
        run(() -> count[0] = (int) size.invoke(vocabulary));
        tokens = count[0];
        decode = function("llama_decode", INT, POINTER, BATCH);
        logits = function("llama_get_logits_ith", POINTER, POINTER, INT);
        batch = function("llama_batch_get_one", BATCH, POINTER, INT);
    }

    /** Forgets the text. */
    void clear() {
        run(() -> function("llama_kv_self_clear", null, POINTER).invoke(context));
    }

    /** The logits after the last of some more tokens. */
    float[] next(int... ids) {
        return all(false, ids)[0];
    }

    /** The logits after each of some more tokens. */
    float[][] each(int... ids) {
        return all(true, ids);
    }

    private float[][] all(boolean each, int... ids) {
        try (Arena call = Arena.ofConfined()) {
            var list = call.allocateFrom(INT, ids);
            var one = get(() -> batch.invokeWithArguments(call, list, ids.length));
            if (each) {
                var wanted = call.allocate(ids.length).fill((byte) 1);
                one.set(ValueLayout.ADDRESS, LOGITS_OF_BATCH, wanted);
            }
            run(
                    () -> {
                        int code = (int) decode.invoke(context, one);
                        if (code != 0) {
                            throw new IllegalStateException("llama_decode gives " + code);
                        }
                    });
            float[][] found = new float[each ? ids.length : 1][];
            for (int i = 0; i < found.length; i++) {
                int at = each ? i : ids.length - 1;
                var row = get(() -> logits.invokeWithArguments(context, at));
                found[i] = row.reinterpret(4L * tokens).toArray(ValueLayout.JAVA_FLOAT);
            }
            return found;
        }
    }

    /** With the token that begins a text. */
    int[] tokens(String text) {
        MethodHandle tokenize =
                function(
                        "llama_tokenize",
                        INT,
                        POINTER,
                        POINTER,
                        INT,
                        POINTER,
                        INT,
                        ValueLayout.JAVA_BOOLEAN,
                        ValueLayout.JAVA_BOOLEAN);
        try (Arena call = Arena.ofConfined()) {
            var utf8 = call.allocateFrom(text);
            int most = text.length() * 4 + 8;
            var ids = call.allocate(INT, most);
            int[] count = new int[1];
            int length = (int) utf8.byteSize() - 1;
            run(
                    () ->
                            count[0] =
                                    (int)
                                            tokenize.invoke(
                                                    vocabulary,
                                                    utf8,
                                                    length,
                                                    ids,
                                                    most,
                                                    true,
                                                    false));
            return ids.asSlice(0, 4L * count[0]).toArray(INT);
        }
    }

    @Override
    public void close() {
        run(() -> function("llama_free", null, POINTER).invoke(context));
        run(() -> function("llama_model_free", null, POINTER).invoke(model));
    }

    /** It must stay: a callback that does nothing, in place of one that prints. */
    private void silence() {
        MethodHandle nothing =
                java.lang.invoke.MethodHandles.empty(
                        java.lang.invoke.MethodType.methodType(
                                void.class, int.class, MemorySegment.class, MemorySegment.class));
        var stub =
                Linker.nativeLinker()
                        .upcallStub(
                                nothing,
                                FunctionDescriptor.ofVoid(INT, POINTER, POINTER),
                                Arena.global());
        run(
                () ->
                        function("llama_log_set", null, POINTER, POINTER)
                                .invoke(stub, MemorySegment.NULL));
    }

    private static Path unpacked() {
        boolean arm = System.getProperty("os.arch").toLowerCase(Locale.ROOT).contains("aarch64");
        String name =
                "/de/kherud/llama/Linux/%s/libjllama.so".formatted(arm ? "aarch64" : "x86_64");
        try (InputStream in = LlamaCpp.class.getResourceAsStream(name)) {
            Path file = Files.createTempFile("llama", ".so");
            file.toFile().deleteOnExit();
            Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
            return file;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static MemoryLayout structure(int bytes) {
        return MemoryLayout.structLayout(
                MemoryLayout.sequenceLayout(bytes / Long.BYTES, ValueLayout.JAVA_LONG)
                        .withName("members"));
    }

    private MethodHandle function(String name, MemoryLayout result, MemoryLayout... arguments) {
        var descriptor =
                result == null
                        ? FunctionDescriptor.ofVoid(arguments)
                        : FunctionDescriptor.of(result, arguments);
        return Linker.nativeLinker().downcallHandle(library.findOrThrow(name), descriptor);
    }

    /** A call that may throw anything. */
    private interface Call {
        void run() throws Throwable;
    }

    /** A call that gives memory. */
    private interface Getter {
        Object get() throws Throwable;
    }

    private static void run(Call call) {
        get(
                () -> {
                    call.run();
                    return null;
                });
    }

    private static MemorySegment get(Getter getter) {
        try {
            return (MemorySegment) getter.get();
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }
}
