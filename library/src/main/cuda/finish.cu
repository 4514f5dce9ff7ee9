// Makes rows of a result out of sums: adds the parts of all ranks in rank order, applies an epilogue, and rounds once.
// Given the same sums, the bits are those of Activations, RowNorm, RowConverter and ScaledMatrix (a NaN's own excepted):
// the same float64 steps in the same order. So it is compiled with -fmad=false, and a product and a sum are fused only
// where the text says fma. On the Java side, in dev.weft.cuda.exec, DeviceEpilogue writes the same bytes of Finish.
#include "schedule.cuh"

constexpr int MOST_PARTS = 64;
constexpr int COLS = 4; // neighbours in a row, of one thread: 16 bytes of fp32
constexpr int ROWS = 2; // of one thread; with more, registers leave room for too few threads
constexpr int ROW_THREADS = 128; // of whole rows: with COLS each, one for each of the sums of RowNorm.java

// As in dev.weft.tensor.DType.
enum Type { FP32, FP16, BF16, E4M3, E5M2 };

// As in dev.weft.tensor.ScaledMatrix.Scaling, and that of results that have no scales.
enum Scaling { NO_SCALES, BY_ROW, BY_BLOCK };

// As in dev.weft.op.exec.EpilogueSteps.Kind, from 1 on.
enum Step { NONE, BIAS, RELU, GELU, GELU_TANH, SILU, SWIGLU, RESIDUAL, RMS_NORM, LAYER_NORM };

// 2176 bytes. All pitches are bytes.
struct Finish {
    Source parts[2][MOST_PARTS]; // sums, by product and rank
    const float* bias[2];        // by product
    Source residual;             // null if no step adds one
    void* target;
    u64 targetPitch;
    int partCount;
    int products; // 2 if swiglu joins two, else 1
    int rows;
    int cols;
    u32 steps; // four bits each, the first step in the lowest
    int residualType;
    int targetType;
    int vector;   // whether every row of every matrix starts at a multiple of four elements
    int laneBits; // a block takes 2^laneBits units of four columns and 256 / 2^laneBits rows at a time
    int partType; // fp32, or bf16 if sums are rounded before they are added
    Period* busy; // null: no times are kept
    const float* normWeight; // null if rows are not normalized
    const float* normBias;   // null for the root mean square
    double epsilon;
    int scaling; // of results of 8 bits, which have fp32 scales in front of their rows
    int valuesAt; // bytes of such a row before its elements
};

// ---- Activations: max(x, -0) - |x| e^-a(|x|) G, as in Activations.java.

constexpr double LOG2_E = 1.4426950408889634;
constexpr double LN_2 = 0.6931471805599453;
constexpr double ROUNDER = 0x1.8p52; // added to a number, it leaves the nearest integer in the lowest bits

__device__ __forceinline__ double magnitude(float x, float far) {
    const float t = fabsf(x);
    return t > far ? far : t; // a NaN stays
}

// e^-a for a from 0 to 700.
__device__ __forceinline__ double exponential(double a) {
    const double scaled = fma(-a, LOG2_E, ROUNDER);
    const double power = __longlong_as_double((__double_as_longlong(scaled) + 1023) << 52);
    const double r = fma(-LN_2, scaled - ROUNDER, -a);
    double p = fma(0x1.6ab9524bd976bp-10, r, 0x1.126d1d84d575bp-7);
    p = fma(p, r, 0x1.55589ac13b096p-5);
    p = fma(p, r, 0x1.55540a5c88b11p-3);
    p = fma(p, r, 0x1.fffffaae48d6ep-2);
    p = fma(p, r, 0x1.0000009c1903fp+0);
    p = fma(p, r, 0x1.0000000261e41p+0);
    return power * p;
}

__device__ __forceinline__ double sigmoidTail(double t, double a) {
    const double e = exponential(a);
    return t * e / (1 + e);
}

__device__ __forceinline__ double normalTail(double t) {
    const double e = exponential(0.5 * t * t);
    const double u = 1 / (3 + t);
    double p = fma(0x1.9c12592c46e88p+11, u, -0x1.aa27135834303p+12);
    p = fma(p, u, 0x1.63fead8e00aa8p+12);
    p = fma(p, u, -0x1.21cf3dfcb5707p+11);
    p = fma(p, u, 0x1.b7fd8a5b39a3fp+8);
    p = fma(p, u, -0x1.f31a7c106aea9p+5);
    p = fma(p, u, 0x1.2c6c3c6d9a45ep+4);
    p = fma(p, u, 0x1.af3009d191f1ap+2);
    p = fma(p, u, 0x1.9adfa266c93d5p+1);
    p = fma(p, u, 0x1.32467da28f779p+0);
    p = fma(p, u, 0x1.988584c21c25fp-2);
    return t * e * u * p;
}

__device__ __forceinline__ double lessTail(float x, double tail) {
    return (x < 0 ? -0.0 : (double)x) - tail; // -0 and NaN stay
}

__device__ __forceinline__ double siluOf(float x) {
    const double t = magnitude(x, 200);
    return lessTail(x, sigmoidTail(t, t));
}

__device__ __forceinline__ float geluOf(float x) { return (float)lessTail(x, normalTail(magnitude(x, 16))); }

__device__ __forceinline__ float geluTanhOf(float x) {
    const double t = magnitude(x, 16);
    return (float)lessTail(x, sigmoidTail(t, t * fma(0.07135481627260025, t * t, 1.5957691216057308)));
}

__device__ __forceinline__ float reluOf(float x) { return x <= 0 ? 0.0f : x; } // a NaN stays

// ---- Memory

__device__ __forceinline__ float widened(u16 bits, int type) {
    if (type == BF16) return __uint_as_float((u32)bits << 16);
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

__device__ __forceinline__ u32 packed(float low, float high, int type) {
    u32 both;
    if (type == BF16) {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    } else {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    }
    return both;
}

// Elements col to col + count - 1 of a row, widened; of the four, those beyond count are left alone.
__device__ __forceinline__ void load(const Source& m, int type, u64 row, int col, int count, bool vector,
                                     float (&to)[COLS]) {
    const u8* start = (const u8*)m.data + row * m.pitch;
    if (type == FP32) {
        const float* from = (const float*)start + col;
        if (vector) {
            asm("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                : "l"(from));
            return;
        }
#pragma unroll
        for (int i = 0; i < COLS; i++) {
            if (i < count) to[i] = from[i];
        }
        return;
    }
    const u16* from = (const u16*)start + col;
    if (vector) {
        u32 low, high;
        asm("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(low), "=r"(high) : "l"(from));
        to[0] = widened((u16)low, type);
        to[1] = widened((u16)(low >> 16), type);
        to[2] = widened((u16)high, type);
        to[3] = widened((u16)(high >> 16), type);
        return;
    }
#pragma unroll
    for (int i = 0; i < COLS; i++) {
        if (i < count) to[i] = widened(from[i], type);
    }
}

__device__ __forceinline__ void store(const Finish& f, u64 row, int col, int count, bool vector,
                                      const float (&values)[COLS]) {
    u8* start = (u8*)f.target + row * f.targetPitch;
    if (f.targetType == FP32) {
        float* to = (float*)start + col;
        if (vector) {
            asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(values[0]), "f"(values[1]),
                         "f"(values[2]), "f"(values[3])
                         : "memory");
            return;
        }
#pragma unroll
        for (int i = 0; i < COLS; i++) {
            if (i < count) to[i] = values[i];
        }
        return;
    }
    u16* to = (u16*)start + col;
    const u32 low = packed(values[0], values[1], f.targetType);
    const u32 high = packed(values[2], values[3], f.targetType);
    if (vector) {
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(low), "r"(high) : "memory");
        return;
    }
    if (count > 0) to[0] = (u16)low;
    if (count > 1) to[1] = (u16)(low >> 16);
    if (count > 2) to[2] = (u16)high;
    if (count > 3) to[3] = (u16)(high >> 16);
}

// ---- The kernel

// Four columns of ROWS rows, `stride` rows apart, of one thread.
struct Place {
    u64 row;
    int stride;
    int col;
    int count; // columns that there are
    bool vector;
};

typedef float Values[ROWS][COLS];

__device__ __forceinline__ bool exists(const Finish& f, const Place& at, int i) {
    return at.row + (u64)i * at.stride < (u64)f.rows;
}

// The parts of one product, added in rank order.
__device__ __forceinline__ void sum(const Finish& f, int product, const Place& at, Values& values) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (exists(f, at, i)) {
            load(f.parts[product][0], f.partType, at.row + i * at.stride, at.col, at.count, at.vector, values[i]);
        }
    }
#pragma unroll 2
    for (int part = 1; part < f.partCount; part++) {
        Values added = {};
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (exists(f, at, i)) {
                load(f.parts[product][part], f.partType, at.row + i * at.stride, at.col, at.count, at.vector,
                     added[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < ROWS * COLS; i++) values[i / COLS][i % COLS] += added[i / COLS][i % COLS];
    }
}

__device__ __forceinline__ void addBias(const float* bias, const Place& at, Values& values) {
    float added[COLS] = {};
    load(Source{bias, 0}, FP32, 0, at.col, at.count, at.vector, added);
#pragma unroll
    for (int i = 0; i < ROWS * COLS; i++) values[i / COLS][i % COLS] += added[i % COLS];
}

__device__ __forceinline__ void loadResidual(const Finish& f, const Place& at, Values& values) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (exists(f, at, i)) {
            load(f.residual, f.residualType, at.row + i * at.stride, at.col, at.count, at.vector, values[i]);
        }
    }
}

// A step of one product.
__device__ __forceinline__ void apply(const Finish& f, int step, int product, const Place& at, Values& values,
                                      const Values& residual) {
#define EACH(function)                                                                                                 \
    _Pragma("unroll") for (int i = 0; i < ROWS * COLS; i++) {                                                          \
        values[i / COLS][i % COLS] = function(values[i / COLS][i % COLS]);                                             \
    }
    switch (step) {
    case BIAS: addBias(f.bias[product], at, values); break;
    case RELU: EACH(reluOf); break;
    case GELU: EACH(geluOf); break;
    case GELU_TANH: EACH(geluTanhOf); break;
    case SILU: EACH((float)siluOf); break;
    case RESIDUAL:
#pragma unroll
        for (int i = 0; i < ROWS * COLS; i++) values[i / COLS][i % COLS] += residual[i / COLS][i % COLS];
        break;
    default: break;
    }
#undef EACH
}

// All steps but a norm.
__device__ __forceinline__ void apply(const Finish& f, const Place& at, Values& values) {
    Values second = {}, residual = {};
    // Before anything waits for the sums, so that both are under way.
    if (f.residual.data != nullptr) loadResidual(f, at, residual);
    sum(f, 0, at, values);
    int products = f.products;
    if (products == 2) sum(f, 1, at, second);
    for (u32 steps = f.steps; steps != 0; steps >>= 4) {
        const int step = steps & 15;
        if (step == SWIGLU) {
#pragma unroll
            for (int i = 0; i < ROWS * COLS; i++) {
                float& gate = values[i / COLS][i % COLS];
                gate = (float)(siluOf(gate) * (double)second[i / COLS][i % COLS]);
            }
            products = 1;
            continue;
        }
        apply(f, step, 0, at, values, residual);
        if (products == 2) apply(f, step, 1, at, second, residual);
    }
}

__device__ __forceinline__ void store(const Finish& f, const Place& at, const Values& values) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (exists(f, at, i)) store(f, at.row + i * at.stride, at.col, at.count, at.vector, values[i]);
    }
}

__device__ __forceinline__ void finishAt(const Finish& f, const Place& at) {
    Values values = {};
    apply(f, at, values);
    store(f, at, values);
}

// Launch: 256 threads, grid (units of four columns / 2^laneBits, rows), both rounded up; more rows stride over the grid.
extern "C" __global__ void __launch_bounds__(256) finish(const __grid_constant__ Finish f) {
    Place at;
    const int lanes = 1 << f.laneBits;
    at.stride = (int)blockDim.x >> f.laneBits;
    at.col = (int)((blockIdx.x << f.laneBits) + (threadIdx.x & (lanes - 1))) * COLS;
    at.count = min(COLS, f.cols - at.col);
    if (at.count <= 0) return;
    at.vector = f.vector != 0 && at.count == COLS;
    if (f.busy != nullptr && threadIdx.x == 0 && blockIdx.x + blockIdx.y == 0) f.busy->begin = nowNs();
    const u64 step = (u64)at.stride * ROWS;
    for (at.row = blockIdx.y * step + (threadIdx.x >> f.laneBits); at.row < (u64)f.rows; at.row += gridDim.y * step) {
        finishAt(f, at);
    }
    // The clock of an earlier launch is behind, so nobody resets it.
    if (f.busy != nullptr && threadIdx.x == 0) atomicMax(&f.busy->end, nowNs());
}

// ---- Whole rows: norms, with the sums and formulas of RowNorm.java, and results of 8 bits with scales. A block has
// whole rows, and makes their values anew for each pass:
// what they are made of is in a near cache by then, and only the thread that reads an element writes it.

__device__ __forceinline__ Place placeIn(const Finish& f, u64 row, int col) {
    Place at;
    at.row = row;
    at.stride = 1;
    at.col = col;
    at.count = min(COLS, f.cols - col);
    at.vector = f.vector != 0 && at.count == COLS;
    return at;
}

// What the sums of all threads, of column 4 thread + j of each 512 columns, make together, by the number of columns. All
// threads of the block get it, for each of their rows.
__device__ __forceinline__ void means(const Finish& f, double (&sums)[ROWS][COLS], double (&to)[ROWS]) {
    __shared__ double passed[ROW_THREADS / 2][ROWS * COLS];
    __shared__ double found[ROWS];
    const int thread = (int)threadIdx.x;
    for (int half = ROW_THREADS / 2; half > 0; half /= 2) {
        if (thread >= half && thread < 2 * half) {
#pragma unroll
            for (int i = 0; i < ROWS * COLS; i++) passed[thread - half][i] = sums[i / COLS][i % COLS];
        }
        __syncthreads();
        if (thread < half) {
#pragma unroll
            for (int i = 0; i < ROWS * COLS; i++) sums[i / COLS][i % COLS] += passed[thread][i];
        }
        __syncthreads();
    }
    if (thread == 0) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            found[i] = ((sums[i][0] + sums[i][2]) + (sums[i][1] + sums[i][3])) / (double)f.cols;
        }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ROWS; i++) to[i] = found[i];
    __syncthreads(); // or the next ones might be there first
}

__device__ __forceinline__ void normalize(const Finish& f, const Place& at, const double (&mean)[ROWS],
                                          const double (&scale)[ROWS], Values& values) {
    float weight[COLS] = {}, bias[COLS] = {};
    load(Source{f.normWeight, 0}, FP32, 0, at.col, at.count, at.vector, weight);
    if (f.normBias != nullptr) load(Source{f.normBias, 0}, FP32, 0, at.col, at.count, at.vector, bias);
#pragma unroll
    for (int i = 0; i < ROWS * COLS; i++) {
        float& value = values[i / COLS][i % COLS];
        const double y = ((double)value - mean[i / COLS]) * scale[i / COLS] * (double)weight[i % COLS];
        value = (float)(f.normBias != nullptr ? y + (double)bias[i % COLS] : y);
    }
}

// The largest finite magnitudes of a thread's columns, and those before.
__device__ __forceinline__ void takeLargest(const Values& values, int count, float (&largest)[ROWS]) {
#pragma unroll
    for (int i = 0; i < ROWS * COLS; i++) {
        const float magnitude = fabsf(values[i / COLS][i % COLS]);
        if (i % COLS < count && magnitude > largest[i / COLS] && magnitude <= 0x1.fffffep127f) largest[i / COLS] = magnitude;
    }
}

__device__ __forceinline__ void largestOfWarp(float (&largest)[ROWS]) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int far = 16; far > 0; far /= 2) largest[i] = fmaxf(largest[i], __shfl_xor_sync(0xffffffff, largest[i], far));
    }
}

__device__ __forceinline__ void largestOfBlock(float (&largest)[ROWS]) {
    __shared__ float ofWarps[ROW_THREADS / 32][ROWS];
    largestOfWarp(largest);
    if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) ofWarps[threadIdx.x / 32][i] = largest[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int warp = 0; warp < ROW_THREADS / 32; warp++) largest[i] = fmaxf(largest[i], ofWarps[warp][i]);
    }
    __syncthreads(); // or the next ones might be there first
}

// As Fp8.java: to nearest, ties to even; what is too large becomes the largest finite value.
__device__ __forceinline__ u32 narrowed(float value, int type) {
    const int mantissa = type == E4M3 ? 3 : 2, bias = type == E4M3 ? 7 : 15;
    const u32 bits = __float_as_uint(value), sign = bits >> 24 & 0x80, rest = bits & 0x7fffffff;
    const float magnitude = __uint_as_float(rest);
    if (magnitude != magnitude) return sign | 0x7f;
    if (magnitude >= (type == E4M3 ? 448.0f : 57344.0f)) return sign | (type == E4M3 ? 0x7e : 0x7b);
    if (rest < (u32)(128 - bias) << 23) {
        // Multiples of the smallest value; scaling is exact, and a carry gives the first normal value.
        return sign | (u32)__float2int_rn(magnitude * (type == E4M3 ? 0x1p9f : 0x1p16f));
    }
    const int shift = 23 - mantissa;
    const u32 rounded = rest + (1 << (shift - 1)) - 1 + (rest >> shift & 1);
    return sign | ((rounded >> shift) - (u32)((127 - bias) << mantissa));
}

// Elements of 8 bits, and from the first column of a row or of 128 their scale.
__device__ __forceinline__ void storeScaled(const Finish& f, const Place& at, const float (&largest)[ROWS], const Values& values) {
    const int group = f.scaling == BY_BLOCK ? at.col / 128 : 0;
    const bool isFirst = f.scaling == BY_BLOCK ? at.col % 128 == 0 : at.col == 0;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (!exists(f, at, i)) continue;
        u8* row = (u8*)f.target + (at.row + i * at.stride) * f.targetPitch;
        const float scale =
            largest[i] == 0 ? 1.0f : fmaxf(0x1p-126f, largest[i] / (f.targetType == E4M3 ? 448.0f : 57344.0f));
        if (isFirst && at.count > 0) ((float*)row)[group] = scale;
        u8* to = row + f.valuesAt + at.col;
#pragma unroll
        for (int j = 0; j < COLS; j++) {
            if (j < at.count) to[j] = (u8)narrowed(values[i][j] / scale, f.targetType);
        }
    }
}

enum Pass { MEAN, SQUARES, LARGEST, STORE };

// The root mean square needs no mean, and takes one of 0, which changes no bit.
__device__ __forceinline__ void finishRows(const Finish& f, u64 row) {
    double mean[ROWS] = {}, scale[ROWS] = {};
    float ofRow[ROWS] = {};
    const bool normalized = f.normWeight != nullptr;
#pragma unroll 1
    for (int pass = !normalized ? LARGEST : f.normBias != nullptr ? MEAN : SQUARES; pass <= STORE; pass++) {
        if (pass == LARGEST && f.scaling != BY_ROW) continue;
        double sums[ROWS][COLS] = {};
        // All lanes of a warp, which have 128 columns together, or none.
#pragma unroll 1
        for (int col = (int)threadIdx.x * COLS; (col & ~127) < f.cols; col += ROW_THREADS * COLS) {
            const Place at = placeIn(f, row, col);
            Values values = {};
            apply(f, at, values);
            if (pass <= SQUARES) {
#pragma unroll
                for (int i = 0; i < ROWS * COLS; i++) {
                    const double d = (double)values[i / COLS][i % COLS] - mean[i / COLS];
                    if (i % COLS < at.count) sums[i / COLS][i % COLS] += pass == MEAN ? d : d * d;
                }
                continue;
            }
            if (normalized) normalize(f, at, mean, scale, values);
            if (pass == LARGEST) {
                takeLargest(values, at.count, ofRow);
            } else if (f.scaling == NO_SCALES) {
                store(f, at, values);
            } else {
                float largest[ROWS];
#pragma unroll
                for (int i = 0; i < ROWS; i++) largest[i] = ofRow[i];
                if (f.scaling == BY_BLOCK) {
                    takeLargest(values, at.count, largest);
                    largestOfWarp(largest);
                }
                storeScaled(f, at, largest, values);
            }
        }
        if (pass == MEAN) means(f, sums, mean);
        if (pass == SQUARES) {
            means(f, sums, scale);
#pragma unroll
            for (int i = 0; i < ROWS; i++) scale[i] = 1 / __dsqrt_rn(scale[i] + f.epsilon);
        }
        if (pass == LARGEST) largestOfBlock(ofRow);
    }
}

// Launch: 128 threads, grid (1, rows / 2), rounded up; more rows stride over the grid.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) finish_rows(const __grid_constant__ Finish f) {
    if (f.busy != nullptr && threadIdx.x == 0 && blockIdx.y == 0) f.busy->begin = nowNs();
    for (u64 row = blockIdx.y * (u64)ROWS; row < (u64)f.rows; row += gridDim.y * (u64)ROWS) finishRows(f, row);
    if (f.busy != nullptr && threadIdx.x == 0) atomicMax(&f.busy->end, nowNs());
}
