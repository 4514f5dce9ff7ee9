package dev.weft.ffi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.MemoryLayout.paddingLayout;
import static java.lang.foreign.MemoryLayout.sequenceLayout;
import static java.lang.foreign.MemoryLayout.structLayout;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.StructLayout;

/** The structures that CUDA's calls take, as a 64-bit host lays them out. */
final class CudaStructs {

    /** CUDA_MEMCPY2D. */
    static final StructLayout COPY_2D =
            structLayout(
                    JAVA_LONG.withName("srcXInBytes"),
                    JAVA_LONG.withName("srcY"),
                    JAVA_INT.withName("srcMemoryType"),
                    paddingLayout(4),
                    JAVA_LONG.withName("srcHost"),
                    JAVA_LONG.withName("srcDevice"),
                    JAVA_LONG.withName("srcArray"),
                    JAVA_LONG.withName("srcPitch"),
                    JAVA_LONG.withName("dstXInBytes"),
                    JAVA_LONG.withName("dstY"),
                    JAVA_INT.withName("dstMemoryType"),
                    paddingLayout(4),
                    JAVA_LONG.withName("dstHost"),
                    JAVA_LONG.withName("dstDevice"),
                    JAVA_LONG.withName("dstArray"),
                    JAVA_LONG.withName("dstPitch"),
                    JAVA_LONG.withName("WidthInBytes"),
                    JAVA_LONG.withName("Height"));

    /** CUmemcpyAttributes; a hint is a CUmemLocation, type and id. */
    static final StructLayout COPY_ATTRIBUTES =
            structLayout(
                    JAVA_INT.withName("srcAccessOrder"),
                    sequenceLayout(2, JAVA_INT).withName("srcLocHint"),
                    sequenceLayout(2, JAVA_INT).withName("dstLocHint"),
                    JAVA_INT.withName("flags"));

    /** CUlaunchConfig. */
    static final StructLayout LAUNCH =
            structLayout(
                    JAVA_INT.withName("gridDimX"),
                    JAVA_INT.withName("gridDimY"),
                    JAVA_INT.withName("gridDimZ"),
                    JAVA_INT.withName("blockDimX"),
                    JAVA_INT.withName("blockDimY"),
                    JAVA_INT.withName("blockDimZ"),
                    JAVA_INT.withName("sharedMemBytes"),
                    paddingLayout(4),
                    JAVA_LONG.withName("hStream"),
                    JAVA_LONG.withName("attrs"),
                    JAVA_INT.withName("numAttrs"),
                    paddingLayout(4));

    /** CUlaunchAttribute with the cluster's dimensions in its union of 64 bytes. */
    static final StructLayout LAUNCH_ATTRIBUTE =
            structLayout(
                    JAVA_INT.withName("id"),
                    paddingLayout(4),
                    JAVA_INT.withName("clusterX"),
                    JAVA_INT.withName("clusterY"),
                    JAVA_INT.withName("clusterZ"),
                    paddingLayout(52));

    /** CUipcMemHandle and CUipcEventHandle, both passed by value. */
    static final StructLayout IPC_HANDLE =
            structLayout(sequenceLayout(64, JAVA_BYTE).withName("reserved"));

    /** cublasLtMatmulHeuristicResult_t. */
    static final StructLayout HEURISTIC =
            structLayout(
                    sequenceLayout(8, JAVA_LONG).withName("algo"),
                    JAVA_LONG.withName("workspaceSize"),
                    JAVA_INT.withName("state"),
                    JAVA_FLOAT.withName("wavesCount"),
                    sequenceLayout(4, JAVA_INT).withName("reserved"));

    private CudaStructs() {}

    /** Bytes from the structure's start to a field. */
    static long offset(StructLayout structure, String field) {
        return structure.byteOffset(groupElement(field));
    }
}
