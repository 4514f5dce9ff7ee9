package dev.weft.gemm.code;

import static java.lang.foreign.ValueLayout.ADDRESS;

import dev.weft.ffi.ExecutableMemory;
import dev.weft.ffi.Processor;
import dev.weft.gemm.code.Arguments.Name;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Steps of an epilogue in machine code, for fp32 in memory off the heap. It stays as long as the
 * process runs. Immutable and thread-safe.
 */
@SuppressWarnings("restricted")
public final class EpilogueCode {

    /** What is done to an element. */
    public enum Step {
        BIAS,
        RESIDUAL,
        RELU,
        SILU(200),

        /** Joins two products. */
        SILU_TIMES(200),
        GELU(16),
        GELU_TANH(16);

        /** From this magnitude on, fp32 rounds the results for negative x to zero. */
        final float far;

        Step() {
            this(Float.NaN);
        }

        Step(float far) {
            this.far = far;
        }
    }

    /** The kind of this machine's code; null if Weft writes none, or Java forbids to call it. */
    private static final String KIND = kind();

    /** Function, what places count from, constants, target, arguments; null without a kind. */
    private static final MethodHandle CALL = KIND == null ? null : call();

    private static final Map<List<Step>, EpilogueCode> WRITTEN = new ConcurrentHashMap<>();

    private final MemorySegment function;
    private final MemorySegment table;
    private final int step;

    private EpilogueCode(EpilogueWriter.Written written) {
        function = ExecutableMemory.of(written.code()).entry(0);
        table = Arena.global().allocate(Math.max(1, written.table().length), X86Tiles.LINE_BYTES);
        table.copyFrom(MemorySegment.ofArray(written.table()));
        step = written.step();
    }

    /** The engines' messages say why there is no machine code. */
    private static String kind() {
        try {
            String kind = Processor.here().kind(System.getProperty("weft.gemm.code"));
            ExecutableMemory.of(new byte[1]);
            call();
            return kind;
        } catch (IllegalStateException | IllegalCallerException | LinkageError e) {
            return null;
        }
    }

    private static MethodHandle call() {
        return Linker.nativeLinker()
                .downcallHandle(
                        FunctionDescriptor.ofVoid(ADDRESS, ADDRESS, ADDRESS, ADDRESS),
                        Linker.Option.critical(false));
    }

    /** Null if Weft writes no machine code for this machine. */
    public static EpilogueCode of(List<Step> steps) {
        return KIND == null
                ? null
                : WRITTEN.computeIfAbsent(
                        List.copyOf(steps), key -> new EpilogueCode(writer(KIND).write(key)));
    }

    static EpilogueWriter writer(String kind) {
        return switch (kind) {
            case "avx512" -> new X86Epilogues(512);
            case "avx2" -> new X86Epilogues(256);
            default -> new A64Epilogues();
        };
    }

    /** Elements that are done at a time. */
    public int step() {
        return step;
    }

    /**
     * Does the steps. Callers check that all elements are within memory, and keep calls short: the
     * garbage collector waits for them.
     *
     * @param base memory that the addresses of operands need not be in; it stays until the end of
     *     the call, so that of the operand that the caller does not own
     * @param at where operands and results are
     * @param target the memory of the results
     * @param count a multiple of {@link #step}
     */
    public void apply(MemorySegment base, Addresses at, MemorySegment target, int count) {
        Arguments arguments = at.arguments;
        arguments.set(Name.TARGET, at.target - target.address());
        arguments.set(Name.SOURCE, at.source - base.address());
        arguments.set(Name.FACTORS, at.factors - base.address());
        arguments.set(Name.BIAS, at.bias - base.address());
        arguments.set(Name.RESIDUAL, at.residual - base.address());
        arguments.set(Name.COUNT, count);
        try {
            CALL.invokeExact(function, base, table, target, arguments.inMemory());
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("a call of machine code failed", e);
        }
    }

    /** Where the operands of a call are; those that its steps do not use may be anything. */
    public static final class Addresses {

        private final Arguments arguments =
                new Arguments(Arena.ofAuto().allocate(Arguments.BYTES, Long.BYTES));

        public long source;
        public long target;

        /** Of {@link Step#SILU_TIMES}. */
        public long factors;

        public long bias;
        public long residual;
    }
}
