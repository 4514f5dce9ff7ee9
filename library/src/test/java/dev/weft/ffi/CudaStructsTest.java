package dev.weft.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.StructLayout;
import org.junit.jupiter.api.Test;

/** The numbers are those of a C compiler for CUDA 13.0's headers on x86-64. */
class CudaStructsTest {

    private static void assertOffset(long expected, StructLayout structure, String field) {
        assertEquals(expected, CudaStructs.offset(structure, field), field);
    }

    @Test
    void rectangleCopy() {
        StructLayout copy = CudaStructs.COPY_2D;
        assertEquals(128, copy.byteSize());
        assertOffset(16, copy, "srcMemoryType");
        assertOffset(24, copy, "srcHost");
        assertOffset(32, copy, "srcDevice");
        assertOffset(48, copy, "srcPitch");
        assertOffset(56, copy, "dstXInBytes");
        assertOffset(72, copy, "dstMemoryType");
        assertOffset(88, copy, "dstDevice");
        assertOffset(104, copy, "dstPitch");
        assertOffset(112, copy, "WidthInBytes");
        assertOffset(120, copy, "Height");
    }

    @Test
    void copyAttributes() {
        StructLayout attributes = CudaStructs.COPY_ATTRIBUTES;
        assertEquals(24, attributes.byteSize());
        assertOffset(0, attributes, "srcAccessOrder");
        assertOffset(4, attributes, "srcLocHint");
        assertOffset(12, attributes, "dstLocHint");
        assertOffset(20, attributes, "flags");
    }

    @Test
    void launchConfiguration() {
        StructLayout launch = CudaStructs.LAUNCH;
        assertEquals(56, launch.byteSize());
        assertOffset(12, launch, "blockDimX");
        assertOffset(24, launch, "sharedMemBytes");
        assertOffset(32, launch, "hStream");
        assertOffset(40, launch, "attrs");
        assertOffset(48, launch, "numAttrs");
    }

    @Test
    void launchAttribute() {
        StructLayout attribute = CudaStructs.LAUNCH_ATTRIBUTE;
        assertEquals(72, attribute.byteSize());
        assertOffset(8, attribute, "clusterX");
        assertOffset(12, attribute, "clusterY");
        assertOffset(16, attribute, "clusterZ");
    }

    @Test
    void handlesAndHeuristics() {
        assertEquals(64, CudaStructs.IPC_HANDLE.byteSize());
        assertEquals(96, CudaStructs.HEURISTIC.byteSize());
        assertOffset(64, CudaStructs.HEURISTIC, "workspaceSize");
        assertOffset(72, CudaStructs.HEURISTIC, "state");
        assertOffset(76, CudaStructs.HEURISTIC, "wavesCount");
        assertOffset(80, CudaStructs.HEURISTIC, "reserved");
    }
}
