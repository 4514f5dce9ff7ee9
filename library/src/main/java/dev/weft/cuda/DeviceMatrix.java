package dev.weft.cuda;

import dev.weft.ffi.CudaMemory;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * A view of {@code rows x cols} elements in device memory, Weft's own or anybody else's pointer. It
 * owns nothing.
 *
 * @param address may be 0 if there are no elements
 * @param rowPitch elements from one row's start to the next one's, at least {@code cols}
 */
public record DeviceMatrix(long address, DType dtype, long rows, long cols, long rowPitch) {

    /** Rows that start so suit the tensor copy engine. */
    private static final int ROW_ALIGNMENT_BYTES = 16;

    public DeviceMatrix {
        Objects.requireNonNull(dtype, "dtype");
        boolean nowhere = address == 0 && rows > 0 && cols > 0;
        if (nowhere || rows < 0 || cols < 0 || rowPitch < cols) {
            throw new IllegalArgumentException(
                    ("device matrix of %s x %s with row pitch %s at %s: expected an address,"
                                    + " no negative size, and a pitch of at least the columns")
                            .formatted(rows, cols, rowPitch, address));
        }
    }

    /** The pitch, in elements, with which every row of {@code cols} elements is well aligned. */
    public static long alignedPitch(DType dtype, long cols) {
        long unit = ROW_ALIGNMENT_BYTES / dtype.bytes();
        return Math.ceilDiv(Math.max(1, cols), unit) * unit;
    }

    /** Bytes that a matrix of aligned rows needs; at least one. */
    public static long alignedBytes(DType dtype, long rows, long cols) {
        return Math.max(1, rows) * alignedPitch(dtype, cols) * dtype.bytes();
    }

    /** A matrix of aligned rows at the start of {@code buffer}. */
    public static DeviceMatrix in(DeviceBuffer buffer, DType dtype, long rows, long cols) {
        return new DeviceMatrix(buffer.address(), dtype, rows, cols, alignedPitch(dtype, cols));
    }

    /**
     * What another library shows as DLPack: a matrix of two dimensions on {@code gpu}, whose rows
     * have their elements side by side. The library keeps it, and frees it once you call its
     * deleter.
     *
     * @param tensor address of a {@code DLTensor}, or of a {@code DLManagedTensor}; of a {@code
     *     DLManagedTensorVersioned}, the address of the {@code DLTensor} in it
     */
    public static DeviceMatrix ofDlpack(Gpu gpu, long tensor) {
        return DlpackTensor.read(tensor, gpu.ordinal());
    }

    /**
     * This as a {@code DLManagedTensor} for another library, without a deleter: its memory and the
     * structure, which lies in {@code arena}, must outlive the other library's use.
     *
     * @param gpu on which this lies
     */
    public MemorySegment toDlpack(Gpu gpu, Arena arena) {
        return DlpackTensor.write(this, gpu, arena);
    }

    public long pitchBytes() {
        return rowPitch * dtype.bytes();
    }

    /** Whether bulk tensor copies and 16-byte loads can read it in place. */
    public boolean isAligned() {
        return address % ROW_ALIGNMENT_BYTES == 0 && pitchBytes() % ROW_ALIGNMENT_BYTES == 0;
    }

    /** The address of an element. */
    public long at(long row, long col) {
        return address + (row * rowPitch + col) * dtype.bytes();
    }

    /** {@code count} rows from {@code first} on. */
    public DeviceMatrix rows(long first, long count) {
        Objects.checkFromIndexSize(first, count, rows);
        return new DeviceMatrix(at(first, 0), dtype, count, cols, rowPitch);
    }

    /** Copies a host matrix of the same shape here, and waits for it. */
    public void upload(Matrix from, GpuStream stream) {
        requireShape(from);
        copy(address, pitchBytes(), from.data().address(), from.rowPitch() * dtype.bytes(), stream);
        stream.synchronize();
    }

    /** Copies this into a host matrix of the same shape, and waits for it. */
    public void download(Matrix to, GpuStream stream) {
        requireShape(to);
        copy(to.data().address(), to.rowPitch() * dtype.bytes(), address, pitchBytes(), stream);
        stream.synchronize();
    }

    /** Queues a copy of another device matrix of the same shape. */
    public void copyFrom(DeviceMatrix from, GpuStream stream) {
        copy(address, pitchBytes(), from.address, from.pitchBytes(), stream);
    }

    private void copy(long to, long toPitch, long from, long fromPitch, GpuStream stream) {
        if (rows > 0 && cols > 0) {
            long width = cols * dtype.bytes();
            CudaMemory.copy2dAsync(to, toPitch, from, fromPitch, width, rows, stream.handle());
        }
    }

    private void requireShape(Matrix host) {
        if (host.rows() != rows || host.cols() != cols || host.dtype() != dtype) {
            throw new IllegalArgumentException(
                    "host matrix " + host.describe() + ": expected " + describe());
        }
        if (!host.data().isNative()) {
            throw new IllegalArgumentException(
                    "host matrix " + host.describe() + " on the heap: expected native memory");
        }
    }

    public String describe() {
        return "[" + rows + ", " + cols + "] " + dtype.label();
    }
}
