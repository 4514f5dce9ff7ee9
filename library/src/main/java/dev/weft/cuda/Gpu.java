package dev.weft.cuda;

import dev.weft.ffi.CudaDevices;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * One GPU and its primary context, which this process's other CUDA users share. It is opened once
 * and kept until the process ends, since loaded kernels live in it. Any thread may use it after
 * {@link #bind}.
 */
public final class Gpu {

    private static final Map<Integer, Gpu> OPEN = new ConcurrentHashMap<>();

    private final int ordinal;
    private final long context;
    private final String name;
    private final int multiprocessors;
    private final int major;
    private final int minor;

    private Gpu(int ordinal, long context) {
        this.ordinal = ordinal;
        this.context = context;
        this.name = CudaDevices.name(ordinal);
        this.multiprocessors = CudaDevices.attribute(ordinal, CudaDevices.MULTIPROCESSORS);
        this.major = CudaDevices.attribute(ordinal, CudaDevices.COMPUTE_MAJOR);
        this.minor = CudaDevices.attribute(ordinal, CudaDevices.COMPUTE_MINOR);
    }

    /** Why no GPU can be used here and what would help, or empty if one can be used. */
    public static Optional<String> unavailable() {
        Optional<String> driver = CudaDevices.unavailable();
        if (driver.isPresent()) {
            return driver;
        }
        return CudaDevices.count() > 0
                ? Optional.empty()
                : Optional.of("the driver is there, but no GPU (is CUDA_VISIBLE_DEVICES empty?)");
    }

    public static int count() {
        return unavailable().isPresent() ? 0 : CudaDevices.count();
    }

    /** Opens GPU number {@code ordinal} and binds it to the calling thread. */
    public static Gpu open(int ordinal) {
        unavailable()
                .ifPresent(
                        why -> {
                            throw new IllegalStateException("no GPU: " + why);
                        });
        if (ordinal < 0 || ordinal >= CudaDevices.count()) {
            throw new IllegalArgumentException(
                    "GPU " + ordinal + ": expected 0 to " + (CudaDevices.count() - 1));
        }
        Gpu gpu =
                OPEN.computeIfAbsent(ordinal, o -> new Gpu(o, CudaDevices.retainPrimaryContext(o)));
        gpu.bind();
        return gpu;
    }

    /** Makes this GPU the one that the calling thread's CUDA calls go to. */
    public void bind() {
        CudaDevices.makeCurrent(context);
    }

    public int ordinal() {
        return ordinal;
    }

    public String name() {
        return name;
    }

    public int multiprocessors() {
        return multiprocessors;
    }

    /** Compute capability in one number: 80, 90. */
    public int capability() {
        return major * 10 + minor;
    }

    /** A number that tells it from every other GPU, in whichever order processes see them. */
    public long identity() {
        return Long.parseUnsignedLong(CudaDevices.uuid(ordinal), 0, 16, 16);
    }

    /** What kernels for it are compiled for, such as {@code sm_80}. */
    public String architecture() {
        return "sm_" + capability();
    }

    public int sharedBytesPerMultiprocessor() {
        return CudaDevices.attribute(ordinal, CudaDevices.SHARED_BYTES_PER_MULTIPROCESSOR);
    }

    /** Lets this GPU read and write the memory of {@code peer}, if the two are linked. */
    public void reach(Gpu peer) {
        if (peer.ordinal == ordinal) {
            return;
        }
        if (!CudaDevices.canAccessPeer(ordinal, peer.ordinal)) {
            throw new IllegalStateException(
                    "GPU %s (%s) cannot reach the memory of GPU %s: --peers host needs no such link"
                            .formatted(ordinal, name, peer.ordinal));
        }
        bind();
        CudaDevices.enablePeerAccess(peer.context);
    }

    @Override
    public String toString() {
        return name + " (GPU " + ordinal + ", compute capability " + major + "." + minor + ")";
    }
}
