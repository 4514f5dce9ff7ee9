package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/**
 * A library that is loaded, or the reason why it is not. Functions can be bound either way: a
 * missing one, alone or with its library, throws that reason at every call, so that callers hold
 * constants and need no checks. Thread-safe.
 *
 * @param howToGetIt ends every sentence about its absence, in brackets
 * @param codeNames names of the codes that its functions return
 * @param symbols null if it is not loaded
 * @param failure why not, or null
 */
record BoundLibrary(
        String name,
        String howToGetIt,
        IntFunction<String> codeNames,
        SymbolLookup symbols,
        Throwable failure) {

    private static final String HOW_TO_ALLOW_IT =
            "start Java with --enable-native-access=dev.weft, or ALL-UNNAMED on the class path";

    private static final MethodHandle MISSING;

    static {
        try {
            MISSING =
                    MethodHandles.lookup()
                            .findVirtual(
                                    BoundLibrary.class,
                                    "missing",
                                    MethodType.methodType(
                                            IllegalStateException.class, String.class));
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    static BoundLibrary load(
            String name,
            String howToGetIt,
            IntFunction<String> codeNames,
            Supplier<SymbolLookup> loader) {
        try {
            return new BoundLibrary(name, howToGetIt, codeNames, loader.get(), null);
        } catch (Throwable e) {
            // Loading fails in many ways (no file, no permission); all are reported alike.
            return new BoundLibrary(name, howToGetIt, codeNames, null, e);
        }
    }

    /** This library after a successful first call; if that throws, the library is missing. */
    BoundLibrary startedBy(Consumer<BoundLibrary> firstCall) {
        if (failure != null) {
            return this;
        }
        try {
            firstCall.accept(this);
            return this;
        } catch (RuntimeException e) {
            return new BoundLibrary(name, howToGetIt, codeNames, null, e);
        }
    }

    /** This library under a name that is known once it is loaded. */
    BoundLibrary named(String loadedName) {
        return new BoundLibrary(loadedName, howToGetIt, codeNames, symbols, failure);
    }

    String codeName(int code) {
        return codeNames.apply(code);
    }

    /** Why the library cannot be used here and how to get it, or empty if it can be used. */
    Optional<String> unavailable() {
        return failure == null ? Optional.empty() : Optional.of(explain());
    }

    /** Why a function cannot be called here, or empty if it can. */
    Optional<String> unavailable(String symbol) {
        return symbols != null && symbols.find(symbol).isPresent()
                ? Optional.empty()
                : Optional.of(missing(symbol).getMessage());
    }

    /**
     * A function that returns a code, 0 for success.
     *
     * @param parameters a letter each: P for a pointer or a size of 64 bits, I for an int
     */
    NativeFunction function(String symbol, String parameters) {
        return function(
                symbol,
                parameters
                        .chars()
                        .mapToObj(letter -> layout(symbol, (char) letter))
                        .toArray(MemoryLayout[]::new));
    }

    private static MemoryLayout layout(String symbol, char letter) {
        return switch (letter) {
            case 'P' -> JAVA_LONG;
            case 'I' -> JAVA_INT;
            default -> throw new IllegalArgumentException(symbol + " with " + letter + ": P or I");
        };
    }

    NativeFunction function(String symbol, MemoryLayout... parameters) {
        MethodHandle exact = bind(symbol, FunctionDescriptor.of(JAVA_INT, parameters));
        MethodType longs = exact.type();
        for (int i = 0; i < parameters.length; i++) {
            if (longs.parameterType(i).isPrimitive()) {
                longs = longs.changeParameterType(i, long.class);
            }
        }
        return new NativeFunction(this, symbol, MethodHandles.explicitCastArguments(exact, longs));
    }

    @SuppressWarnings("restricted")
    MethodHandle bind(String symbol, FunctionDescriptor descriptor) {
        Optional<MemorySegment> address = symbols == null ? Optional.empty() : symbols.find(symbol);
        return address.map(a -> Linker.nativeLinker().downcallHandle(a, descriptor))
                .orElseGet(() -> thrower(symbol, descriptor.toMethodType()));
    }

    private MethodHandle thrower(String symbol, MethodType type) {
        MethodHandle reason = MethodHandles.insertArguments(MISSING, 0, this, symbol);
        MethodHandle thrower =
                MethodHandles.throwException(type.returnType(), IllegalStateException.class);
        return MethodHandles.dropArguments(
                MethodHandles.collectArguments(thrower, 0, reason), 0, type.parameterList());
    }

    /** The error for what a bound function threw: a missing one's reason, the rest wrapped. */
    IllegalStateException broken(String symbol, Throwable e) {
        if (e instanceof Error error) {
            throw error;
        }
        return e instanceof IllegalStateException missing
                ? missing
                : new IllegalStateException(name + ": " + symbol + " failed", e);
    }

    private IllegalStateException missing(String symbol) {
        String why =
                failure == null
                        ? "this version has no " + symbol + " (" + howToGetIt + ")"
                        : explain();
        // A failed first call has already named the library.
        String prefix = failure instanceof NativeCallException ? "" : name + ": ";
        return new IllegalStateException(prefix + why, failure);
    }

    private String explain() {
        String why = failure.getMessage() == null ? failure.toString() : failure.getMessage();
        String help = failure instanceof IllegalCallerException ? HOW_TO_ALLOW_IT : howToGetIt;
        return why + " (" + help + ")";
    }
}
