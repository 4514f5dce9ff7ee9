import module java.base;

/**
 * One product per line of input, by the ggml inside llama.cpp, stepped by weft bench.
 *
 * <pre>
 * LlamaProduct.java FOLDER M N K THREADS q8_0|q4_0|q4_k LIBRARIES
 * </pre>
 *
 * FOLDER has a.bin (fp32, [M, K]) and b.bin (blocks, [N, K]), LIBRARIES libjllama.so. Answers "ready
 * NAME" first, then every line: "s" with the nanoseconds of one product, "c" with "ok" once the
 * product is in c.bin. The weight is in the memory where llama.cpp itself would put it, rearranged
 * where it has kernels for that.
 */
static final Map<String, Integer> TYPES = Map.of("q4_0", 2, "q8_0", 8, "q4_k", 12);

static final int FP32 = 0;
static final long BUFFER_OF_TENSOR = 8;
static final MemoryLayout INT = ValueLayout.JAVA_INT;
static final MemoryLayout LONG = ValueLayout.JAVA_LONG;
static final MemoryLayout POINTER = ValueLayout.ADDRESS;
static final MemoryLayout PARAMETERS =
        MemoryLayout.structLayout(LONG.withName("size"), POINTER.withName("memory"), LONG.withName("noAlloc"));

SymbolLookup library;

void main(String[] args) throws Throwable {
    Path folder = Path.of(args[0]);
    long m = Long.parseLong(args[1]);
    long n = Long.parseLong(args[2]);
    long k = Long.parseLong(args[3]);
    int threads = Integer.parseInt(args[4]);
    int type = TYPES.get(args[5]);
    Arena arena = Arena.global();
    library = SymbolLookup.libraryLookup(Path.of(args[6], "libjllama.so"), arena);

    var device = call("ggml_backend_reg_dev_get", pointer("ggml_backend_cpu_reg"), 0L);
    var backend = call("ggml_backend_dev_init", device, MemorySegment.NULL);
    function("ggml_backend_cpu_set_n_threads", null, POINTER, INT).invoke(backend, threads);
    var plain = pointer("ggml_backend_cpu_buffer_type");

    var weights = context(arena);
    var b = tensor(weights, type, k, n);
    var rest = context(arena);
    var a = tensor(rest, FP32, k, m);
    var c = (MemorySegment) function("ggml_mul_mat", POINTER, POINTER, POINTER, POINTER).invoke(rest, b, a);
    var graph = pointer("ggml_new_graph", rest);
    function("ggml_build_forward_expand", null, POINTER, POINTER).invoke(graph, c);
    var memory = memoryOfWeights(arena, device, b, c);
    var allocate = function("ggml_backend_alloc_ctx_tensors_from_buft", POINTER, POINTER, POINTER);
    allocate.invoke(weights, memory.orElse(plain));
    allocate.invoke(rest, plain);
    write(b, folder.resolve("b.bin"), arena);
    write(a, folder.resolve("a.bin"), arena);

    var compute = function("ggml_backend_graph_compute", INT, POINTER, POINTER);
    IO.println("ready llama.cpp" + (memory.isPresent() ? " rearranged" : ""));
    for (String line = IO.readln(); line != null; line = IO.readln()) {
        if (line.startsWith("s")) {
            long startNs = System.nanoTime();
            if ((int) compute.invoke(backend, graph) != 0) {
                throw new IllegalStateException("ggml_backend_graph_compute failed");
            }
            IO.println(System.nanoTime() - startNs);
        } else {
            var product = arena.allocate(m * n * Float.BYTES);
            function("ggml_backend_tensor_get", null, POINTER, POINTER, LONG, LONG)
                    .invoke(c, product, 0L, product.byteSize());
            try (var file = FileChannel.open(
                    folder.resolve("c.bin"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
                file.write(product.asByteBuffer());
            }
            IO.println("ok");
        }
    }
}

/** The first kind of memory with kernels of its own for this product, as llama.cpp chooses it. */
Optional<MemorySegment> memoryOfWeights(
        Arena arena, MemorySegment device, MemorySegment b, MemorySegment c) throws Throwable {
    var register = pointer("ggml_backend_dev_backend_reg", device);
    var find = (MemorySegment) function("ggml_backend_reg_get_proc_address", POINTER, POINTER, POINTER)
            .invoke(register, arena.allocateFrom("ggml_backend_dev_get_extra_bufts"));
    if (find.equals(MemorySegment.NULL)) {
        return Optional.empty();
    }
    var list = (MemorySegment) Linker.nativeLinker()
            .downcallHandle(find, FunctionDescriptor.of(ValueLayout.ADDRESS, POINTER)).invoke(device);
    list = list.reinterpret(Long.MAX_VALUE);
    var supports = function("ggml_backend_dev_supports_op", ValueLayout.JAVA_BOOLEAN, POINTER, POINTER);
    for (int i = 0; list.getAtIndex(ValueLayout.ADDRESS, i).address() != 0; i++) {
        var kind = list.getAtIndex(ValueLayout.ADDRESS, i);
        var buffer = (MemorySegment) function("ggml_backend_buft_alloc_buffer", POINTER, POINTER, LONG)
                .invoke(kind, 0L);
        var place = b.reinterpret(BUFFER_OF_TENSOR + Long.BYTES);
        place.set(ValueLayout.ADDRESS, BUFFER_OF_TENSOR, buffer);
        boolean fits = (boolean) supports.invoke(device, c);
        place.set(ValueLayout.ADDRESS, BUFFER_OF_TENSOR, MemorySegment.NULL);
        if (fits) {
            return Optional.of(kind);
        }
    }
    return Optional.empty();
}

MemorySegment context(Arena arena) throws Throwable {
    var parameters = arena.allocate(PARAMETERS);
    parameters.set(ValueLayout.JAVA_LONG, 0, 16 << 20);
    parameters.set(ValueLayout.JAVA_LONG, 16, 1); // tensors get memory later
    return (MemorySegment) function("ggml_init", POINTER, PARAMETERS).invoke(parameters);
}

MemorySegment tensor(MemorySegment context, int type, long cols, long rows) throws Throwable {
    return (MemorySegment) function("ggml_new_tensor_2d", POINTER, POINTER, INT, LONG, LONG)
            .invoke(context, type, cols, rows);
}

void write(MemorySegment tensor, Path file, Arena arena) throws Throwable {
    try (var channel = FileChannel.open(file)) {
        var bytes = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena);
        function("ggml_backend_tensor_set", null, POINTER, POINTER, LONG, LONG)
                .invoke(tensor, bytes, 0L, bytes.byteSize());
    }
}

MemorySegment pointer(String name, MemorySegment... arguments) throws Throwable {
    var layouts = new MemoryLayout[arguments.length];
    Arrays.fill(layouts, POINTER);
    return (MemorySegment) function(name, POINTER, layouts).invokeWithArguments((Object[]) arguments);
}

MemorySegment call(String name, MemorySegment first, Object second) throws Throwable {
    MemoryLayout layout = second instanceof Long ? LONG : POINTER;
    return (MemorySegment) function(name, POINTER, POINTER, layout).invoke(first, second);
}

MethodHandle function(String name, MemoryLayout result, MemoryLayout... arguments) {
    var descriptor = result == null
            ? FunctionDescriptor.ofVoid(arguments)
            : FunctionDescriptor.of(result, arguments);
    return Linker.nativeLinker().downcallHandle(library.findOrThrow(name), descriptor);
}
