import module java.base;

/**
 * One product in fp32 per line of input, by MKL, stepped by weft bench.
 *
 * <pre>
 * MklProduct.java FOLDER M N K THREADS fp32 LIBRARIES
 * </pre>
 *
 * FOLDER has a.bin ([M, K]) and b.bin ([K, N]), LIBRARIES MKL's libraries. Answers "ready NAME"
 * first, then every line: "s" with the nanoseconds of one product, "c" with "ok" once the product
 * is in c.bin. The environment limits the threads.
 */
static final int ROW_MAJOR = 101;

static final int NOT_TRANSPOSED = 111;

static final int VERSION_BYTES = 200;

void main(String[] args) throws Throwable {
    Path folder = Path.of(args[0]);
    int m = Integer.parseInt(args[1]);
    int n = Integer.parseInt(args[2]);
    int k = Integer.parseInt(args[3]);
    Arena arena = Arena.global();
    var library = SymbolLookup.libraryLookup(Path.of(args[6], "libmkl_rt.so.2"), arena);
    var integer = ValueLayout.JAVA_INT;
    var number = ValueLayout.JAVA_FLOAT;
    var pointer = ValueLayout.ADDRESS;
    // Filled with blanks, and without an end.
    var version = arena.allocate(VERSION_BYTES + 1);
    Linker.nativeLinker()
            .downcallHandle(
                    library.findOrThrow("mkl_get_version_string"), FunctionDescriptor.ofVoid(pointer, integer))
            .invoke(version, VERSION_BYTES);
    var product = Linker.nativeLinker().downcallHandle(
            library.findOrThrow("cblas_sgemm"),
            FunctionDescriptor.ofVoid(
                    integer, integer, integer, integer, integer, integer, number, pointer, integer, pointer, integer,
                    number, pointer, integer));
    var a = read(folder.resolve("a.bin"), arena);
    var b = read(folder.resolve("b.bin"), arena);
    var c = arena.allocate((long) m * n * Float.BYTES, 64);
    // "Intel(R) oneAPI Math Kernel Library Version 2025.2-Product Build ..."
    IO.println("ready MKL " + version.getString(0).replaceFirst(".*Version ([0-9.]+).*", "$1").strip());
    for (String line = IO.readln(); line != null; line = IO.readln()) {
        if (line.startsWith("s")) {
            long startNs = System.nanoTime();
            product.invokeExact(
                    ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, m, n, k, 1f, a, k, b, n, 0f, c, n);
            IO.println(System.nanoTime() - startNs);
        } else {
            try (var file = FileChannel.open(
                    folder.resolve("c.bin"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
                file.write(c.asByteBuffer());
            }
            IO.println("ok");
        }
    }
}

/** Copies a file into memory that begins at a cache line. */
static MemorySegment read(Path file, Arena arena) throws IOException {
    try (var channel = FileChannel.open(file)) {
        var memory = arena.allocate(channel.size(), 64);
        while (channel.read(memory.asByteBuffer().position((int) channel.position())) > 0) {}
        return memory;
    }
}
