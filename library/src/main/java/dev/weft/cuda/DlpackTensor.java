package dev.weft.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import dev.weft.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * DLPack's structures, as libraries exchange tensors: {@code DLTensor}, and {@code
 * DLManagedTensor}, which begins with one. Pure.
 *
 * <pre>
 *  0  data            8  device type, number   16  dimensions   20  type's code, bits, lanes
 * 24  shape          32  strides or null       40  byte offset
 * 48  the manager's own    56  what frees it, or null
 * </pre>
 */
final class DlpackTensor {

    private static final long DEVICE_AT = 8;
    private static final long DIMENSIONS_AT = 16;
    private static final long TYPE_AT = 20;
    private static final long SHAPE_AT = 24;
    private static final long STRIDES_AT = 32;
    private static final long OFFSET_AT = 40;
    private static final long BYTES = 64;

    /** Memory of a GPU. */
    private static final int CUDA = 2;

    private DlpackTensor() {}

    /** What DLPack calls a type: its code, then bits, then 1 lane. */
    private static int type(DType dtype) {
        int code =
                switch (dtype) {
                    case FP32, FP16 -> 2;
                    case BF16 -> 4;
                    case E4M3 -> 10;
                    case E5M2 -> 12;
                };
        return code | 8 * dtype.bytes() << 8 | 1 << 16;
    }

    static DeviceMatrix read(long address, int gpu) {
        if (address == 0) {
            throw new IllegalArgumentException("a DLPack tensor at 0: expected its address");
        }
        MemorySegment tensor = at(address, BYTES);
        int device = tensor.get(JAVA_INT, DEVICE_AT);
        int number = tensor.get(JAVA_INT, DEVICE_AT + 4);
        int dimensions = tensor.get(JAVA_INT, DIMENSIONS_AT);
        if (device != CUDA || number != gpu || dimensions != 2) {
            throw new IllegalArgumentException(
                    "a DLPack tensor of %d dimensions on device %d of type %d: expected 2, on GPU %d (type %d)"
                            .formatted(dimensions, number, device, gpu, CUDA));
        }
        MemorySegment shape = longs(tensor, SHAPE_AT);
        long rows = shape.getAtIndex(JAVA_LONG, 0);
        long cols = shape.getAtIndex(JAVA_LONG, 1);
        long pitch = cols;
        if (tensor.get(JAVA_LONG, STRIDES_AT) != 0) {
            MemorySegment strides = longs(tensor, STRIDES_AT);
            // The stride along one row or one column says nothing.
            pitch = rows > 1 ? strides.getAtIndex(JAVA_LONG, 0) : cols;
            long step = strides.getAtIndex(JAVA_LONG, 1);
            if (step != 1 && cols > 1) {
                throw new IllegalArgumentException(
                        "a DLPack tensor of %d x %d with strides %d and %d: expected the elements of a row side by side"
                                .formatted(rows, cols, pitch, step));
            }
        }
        long data = tensor.get(JAVA_LONG, 0) + tensor.get(JAVA_LONG, OFFSET_AT);
        return new DeviceMatrix(data, dtype(tensor.get(JAVA_INT, TYPE_AT)), rows, cols, pitch);
    }

    @SuppressWarnings("restricted")
    private static MemorySegment at(long address, long bytes) {
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    private static MemorySegment longs(MemorySegment tensor, long at) {
        return at(tensor.get(JAVA_LONG, at), 2L * Long.BYTES);
    }

    private static DType dtype(int type) {
        for (DType dtype : DType.values()) {
            if (type(dtype) == type) {
                return dtype;
            }
        }
        throw new IllegalArgumentException(
                "a DLPack tensor of type code %d with %d bits and %d lanes: expected fp32, fp16, bf16, e4m3fn or e5m2"
                        .formatted(type & 0xff, type >> 8 & 0xff, type >>> 16));
    }

    static MemorySegment write(DeviceMatrix matrix, Gpu gpu, Arena arena) {
        return write(matrix, gpu.ordinal(), arena);
    }

    static MemorySegment write(DeviceMatrix matrix, int gpu, Arena arena) {
        MemorySegment tensor = arena.allocate(BYTES, Long.BYTES);
        boolean empty = matrix.rows() == 0 || matrix.cols() == 0;
        tensor.set(JAVA_LONG, 0, empty ? 0 : matrix.address());
        tensor.set(JAVA_INT, DEVICE_AT, CUDA);
        tensor.set(JAVA_INT, DEVICE_AT + 4, gpu);
        tensor.set(JAVA_INT, DIMENSIONS_AT, 2);
        int type = type(matrix.dtype());
        tensor.set(JAVA_BYTE, TYPE_AT, (byte) type);
        tensor.set(JAVA_BYTE, TYPE_AT + 1, (byte) (type >> 8));
        tensor.set(JAVA_SHORT, TYPE_AT + 2, (short) (type >> 16));
        tensor.set(ADDRESS, SHAPE_AT, arena.allocateFrom(JAVA_LONG, matrix.rows(), matrix.cols()));
        tensor.set(ADDRESS, STRIDES_AT, arena.allocateFrom(JAVA_LONG, matrix.rowPitch(), 1));
        return tensor;
    }
}
