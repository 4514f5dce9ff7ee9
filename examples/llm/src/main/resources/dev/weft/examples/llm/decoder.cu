// What a decoder computes between its products, on one GPU. Every row is computed by itself and in a fixed order, so its
// bits depend neither on the other rows of a call nor on the number of ranks. Activations and what is kept of a chat are
// bf16, all sums fp32.
typedef unsigned short u16;
typedef unsigned int u32;

constexpr int THREADS = 128;

__device__ __forceinline__ u16 narrowed(float x) {
    u16 bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

// Of one value of each thread of the block; everybody gets it.
__device__ __forceinline__ float sumOfBlock(float value) {
    __shared__ float parts[THREADS / 32];
    for (int far = 16; far > 0; far /= 2) value += __shfl_xor_sync(0xffffffff, value, far);
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

__device__ __forceinline__ float mostOfBlock(float value) {
    __shared__ float parts[THREADS / 32];
    for (int far = 16; far > 0; far /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, far));
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    return fmaxf(fmaxf(parts[0], parts[1]), fmaxf(parts[2], parts[3]));
}

// Grid: (1, rows). Pitches are elements; rows are multiples of four, and begin at multiples of 16 bytes.
extern "C" __global__ void __launch_bounds__(THREADS)
rms_norm(const float* x, long xPitch, u16* to, long toPitch, const float* weight, int width, float epsilon) {
    const float4* row = (const float4*)(x + blockIdx.y * xPitch);
    float sum = 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < width / 4; i += THREADS) {
        const float4 v = row[i];
        sum += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
    }
    const float scale = 1 / sqrtf(sumOfBlock(sum) / width + epsilon);
    uint2* target = (uint2*)(to + blockIdx.y * toPitch);
#pragma unroll 4
    for (int i = threadIdx.x; i < width / 4; i += THREADS) {
        const float4 v = row[i], w = ((const float4*)weight)[i];
        const u32 low = narrowed(v.x * scale * w.x) | (u32)narrowed(v.y * scale * w.y) << 16;
        target[i] = {low, narrowed(v.z * scale * w.z) | (u32)narrowed(v.w * scale * w.w) << 16};
    }
}

// What the heads of one rank are, and the rows of a call: of each the chat, and its place there, behind its embedding.
struct Heads {
    int queries; // heads
    int keys;
    int width;        // of a head
    int sharers;      // heads of queries of a head of keys
    int firstQuery;   // among all ranks'
    int firstKey;
    int longest;      // places of a chat
    const float* rows;
    long rowPitch;
    const float* turns; // by place: cosines, then sines, of each pair
};

__device__ __forceinline__ int chatOf(const Heads& h, int row) { return (int)h.rows[row * h.rowPitch]; }
__device__ __forceinline__ int placeOf(const Heads& h, int row) { return (int)h.rows[row * h.rowPitch + 1]; }

// Where keys and values of a place are kept.
__device__ __forceinline__ long keptAt(const Heads& h, int chat, int key, int place) {
    return (((long)chat * h.keys + key) * h.longest + place) * h.width;
}

#define HEADS                                                                                                          \
    int queries, int keysOfRank, int width, int sharers, int firstQuery, int firstKey, int longest, const float *rows, \
        long rowPitch, const float *turns
#define HEADS_OF_ARGUMENTS {queries, keysOfRank, width, sharers, firstQuery, firstKey, longest, rows, rowPitch, turns}

// Turns queries in their place and keys into where they are kept, and keeps values. Columns of qkv: queries, keys, values.
// Grid: (queries + keys, rows); a thread for each pair.
extern "C" __global__ void turn_and_keep(HEADS, float* qkv, long pitch, u16* keptKeys, u16* keptValues) {
    const Heads h = HEADS_OF_ARGUMENTS;
    const int row = blockIdx.y, place = placeOf(h, row), pair = threadIdx.x;
    if (pair * 2 >= h.width) return;
    float* from = qkv + row * pitch + (long)blockIdx.x * h.width + pair * 2;
    const float cosine = h.turns[(long)place * h.width + pair];
    const float sine = h.turns[(long)place * h.width + h.width / 2 + pair];
    const float first = from[0] * cosine - from[1] * sine, second = from[0] * sine + from[1] * cosine;
    const int key = (int)blockIdx.x - h.queries;
    if (key < 0) {
        from[0] = first;
        from[1] = second;
        return;
    }
    const long at = keptAt(h, chatOf(h, row), key, place) + pair * 2;
    keptKeys[at] = narrowed(first);
    keptKeys[at + 1] = narrowed(second);
    const float* value = from + (long)h.keys * h.width;
    keptValues[at] = narrowed(value[0]);
    keptValues[at + 1] = narrowed(value[1]);
}

__device__ __forceinline__ float lower(u32 two) { return __uint_as_float(two << 16); }
__device__ __forceinline__ float upper(u32 two) { return __uint_as_float(two & 0xffff0000u); }

// Attention of one head and row over the places before it, THREADS at a time: their scores, and then their values, scaled
// to the largest score so far. Grid: (queries, rows). A head is at most THREADS wide, and a multiple of 8.
extern "C" __global__ void __launch_bounds__(THREADS)
attend(HEADS, const float* qkv, long pitch, const u16* keptKeys, const u16* keptValues, u16* to, long toPitch) {
    const Heads h = HEADS_OF_ARGUMENTS;
    __shared__ float query[THREADS];
    __shared__ float powers[THREADS];
    __shared__ float mixed[2 * THREADS];
    const int row = blockIdx.y, head = blockIdx.x, thread = threadIdx.x, count = placeOf(h, row) + 1;
    const long kept = keptAt(h, chatOf(h, row), (h.firstQuery + head) / h.sharers - h.firstKey, 0);
    if (thread < h.width) query[thread] = qkv[row * pitch + (long)head * h.width + thread] * (1 / sqrtf((float)h.width));
    // A thread of a group mixes two columns; groups take places in turn.
    const int pairs = h.width / 2, groups = THREADS / pairs, group = thread / pairs, pair = thread % pairs;
    float most = -__int_as_float(0x7f800000), sum = 0, first = 0, second = 0;
    for (int begin = 0; begin < count; begin += THREADS) {
        const int place = begin + thread;
        __syncthreads();
        float score = -__int_as_float(0x7f800000);
        if (place < count) {
            const uint4* key = (const uint4*)(keptKeys + kept + (long)place * h.width);
            score = 0;
#pragma unroll 8
            for (int i = 0; i < h.width / 8; i++) {
                const uint4 k = key[i];
                const float* q = query + 8 * i;
                score += q[0] * lower(k.x) + q[1] * upper(k.x) + q[2] * lower(k.y) + q[3] * upper(k.y);
                score += q[4] * lower(k.z) + q[5] * upper(k.z) + q[6] * lower(k.w) + q[7] * upper(k.w);
            }
        }
        const float next = fmaxf(most, mostOfBlock(score));
        const float less = expf(most - next);
        powers[thread] = expf(score - next);
        sum = sum * less + sumOfBlock(powers[thread]);
        first *= less;
        second *= less;
        most = next;
        if (group < groups) {
            const int end = min(THREADS, count - begin);
            const u32* value = (const u32*)(keptValues + kept + (long)begin * h.width) + pair;
#pragma unroll 8
            for (int i = group; i < end; i += groups) {
                const u32 two = value[i * pairs];
                first += powers[i] * lower(two);
                second += powers[i] * upper(two);
            }
        }
    }
    mixed[2 * thread] = first;
    mixed[2 * thread + 1] = second;
    __syncthreads();
    if (group == 0) {
        for (int other = 1; other < groups; other++) {
            first += mixed[2 * (other * pairs + pair)];
            second += mixed[2 * (other * pairs + pair) + 1];
        }
        ((u32*)(to + row * toPitch + (long)head * h.width))[pair] = narrowed(first / sum) | (u32)narrowed(second / sum) << 16;
    }
}
