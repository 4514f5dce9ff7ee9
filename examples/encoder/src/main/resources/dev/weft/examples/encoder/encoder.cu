// What an encoder computes between its products, on one GPU of compute capability 8.0 or later. A row depends on its
// sentence alone, and everything is added in an order that only the sentence gives, so the bits of an embedding depend
// neither on the batch nor on the number of ranks. Rows are bf16, all sums fp32.
typedef unsigned short u16;
typedef unsigned int u32;

constexpr int WIDTH = 384;    // of a row
constexpr int HEAD = 32;      // columns of a head
constexpr int TILE = 16;      // rows of a tile
constexpr int KEYS = 32;      // that attention takes at a time
constexpr float EPSILON = 1e-12f;
constexpr u32 ALL = 0xffffffff; // lanes of a warp

// Up to 16 rows of one sentence. GpuTiles.java writes them.
struct Tile {
    int first;    // the row of the call where it begins
    int begin;    // the place of that row in its sentence
    int count;    // rows of the sentence; 0 if there is no such tile
    int sentence; // its number
    int ids[TILE];
};

__device__ __forceinline__ float lower(u32 two) { return __uint_as_float(two << 16); }
__device__ __forceinline__ float upper(u32 two) { return __uint_as_float(two & 0xffff0000u); }

// Two values as bf16, the first in the lower half.
__device__ __forceinline__ u32 narrowed(float first, float second) {
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

// Every lane gets it, with the same bits: the two sides of each addition are the same numbers.
__device__ __forceinline__ float sumOfWarp(float value) {
    for (int far = 16; far > 0; far /= 2) value += __shfl_xor_sync(ALL, value, far);
    return value;
}

// ---- Rows. A warp has a row, and lane l the columns 4 l to 4 l + 3 of each 128.

constexpr int PARTS = WIDTH / 128;

__device__ __forceinline__ int columnOf(int part) { return 128 * part + 4 * (threadIdx.x % 32); }

// Layer norm of a row.
__device__ __forceinline__ void normalize(float4 (&row)[PARTS], const float* scale, const float* shift, u16* to) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < PARTS; i++) sum += (row[i].x + row[i].y) + (row[i].z + row[i].w);
    const float mean = sumOfWarp(sum) / WIDTH;
    float squares = 0;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        float4& v = row[i];
        v = {v.x - mean, v.y - mean, v.z - mean, v.w - mean};
        squares += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
    }
    const float factor = 1 / sqrtf(sumOfWarp(squares) / WIDTH + EPSILON);
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        const float4 v = row[i];
        const float4 w = *(const float4*)(scale + columnOf(i)), b = *(const float4*)(shift + columnOf(i));
        *(uint2*)(to + columnOf(i)) = {narrowed(v.x * factor * w.x + b.x, v.y * factor * w.y + b.y),
                                       narrowed(v.z * factor * w.z + b.z, v.w * factor * w.w + b.w)};
    }
}

// What stands for each token, for its place and for its sentence, as a normed row. Of the rows of the call, this rank
// has some, from firstRow on. A warp for each row of a tile. Grid: (tiles, 1).
extern "C" __global__ void __launch_bounds__(32 * TILE)
embed(const Tile* tiles, const float* words, const float* places, const float* types, const float* scale,
      const float* shift, int firstRow, int rows, u16* to, long toPitch) {
    const Tile& tile = tiles[blockIdx.x];
    const int index = threadIdx.x / 32, place = tile.begin + index, row = tile.first + index - firstRow;
    if (place >= tile.count || row < 0 || row >= rows) return;
    const float* word = words + (long)tile.ids[index] * WIDTH;
    const float* ofPlace = places + place * WIDTH;
    float4 sums[PARTS];
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        const int col = columnOf(i);
        const float4 a = *(const float4*)(word + col), b = *(const float4*)(types + col);
        const float4 c = *(const float4*)(ofPlace + col);
        sums[i] = {a.x + b.x + c.x, a.y + b.y + c.y, a.z + b.z + c.z, a.w + b.w + c.w};
    }
    normalize(sums, scale, shift, to + row * toPitch);
}

// Layer norm of products with their bias and a residual. A warp for each row. Grid: (rows / 4, rounded up, 1).
extern "C" __global__ void __launch_bounds__(128)
add_and_normalize(const float* products, long pitch, const float* bias, const u16* residual, long residualPitch,
                  const float* scale, const float* shift, u16* to, long toPitch, int rows) {
    const long row = blockIdx.x * 4L + threadIdx.x / 32;
    if (row >= rows) return;
    float4 sums[PARTS];
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        const int col = columnOf(i);
        const float4 a = *(const float4*)(products + row * pitch + col), b = *(const float4*)(bias + col);
        const uint2 c = *(const uint2*)(residual + row * residualPitch + col);
        sums[i] = {a.x + b.x + lower(c.x), a.y + b.y + upper(c.x), a.z + b.z + lower(c.y), a.w + b.w + upper(c.y)};
    }
    normalize(sums, scale, shift, to + row * toPitch);
}

// x Phi(x).
__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1 + erff(x * 0.70710678f)); }

// gelu of products with their bias; a thread for 8 columns, of which there are a multiple of 8.
extern "C" __global__ void __launch_bounds__(256)
activate(const u16* products, long pitch, const float* bias, u16* to, long toPitch, int rows, int cols) {
    const int units = cols / 8;
    const long index = blockIdx.x * 256L + threadIdx.x, row = index / units;
    if (row >= rows) return;
    const int col = (int)(index % units) * 8;
    const uint4 v = *(const uint4*)(products + row * pitch + col);
    const float4 a = *(const float4*)(bias + col), b = *(const float4*)(bias + col + 4);
    *(uint4*)(to + row * toPitch + col) = {narrowed(gelu(lower(v.x) + a.x), gelu(upper(v.x) + a.y)),
                                           narrowed(gelu(lower(v.y) + a.z), gelu(upper(v.y) + a.w)),
                                           narrowed(gelu(lower(v.z) + b.x), gelu(upper(v.z) + b.y)),
                                           narrowed(gelu(lower(v.w) + b.z), gelu(upper(v.w) + b.w))};
}

// The mean of each sentence's rows. Eight groups of threads take rows in turn, and a thread of a group has 8 columns.
// Grid: (tiles, 1); the first tile of a sentence does it.
extern "C" __global__ void __launch_bounds__(WIDTH)
average(const Tile* tiles, const u16* rows, long pitch, float* to) {
    constexpr int GROUPS = 8;
    __shared__ float sums[GROUPS][WIDTH];
    const Tile& tile = tiles[blockIdx.x];
    const int count = tile.count;
    if (tile.begin > 0 || count == 0) return;
    const int col = threadIdx.x % (WIDTH / 8) * 8, group = threadIdx.x / (WIDTH / 8);
    float sum[8] = {};
#pragma unroll 4
    for (int i = group; i < count; i += GROUPS) {
        const uint4 v = *(const uint4*)(rows + (tile.first + i) * pitch + col);
        const u32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int j = 0; j < 8; j++) sum[j] += j % 2 == 0 ? lower(words[j / 2]) : upper(words[j / 2]);
    }
#pragma unroll
    for (int j = 0; j < 8; j++) sums[group][col + j] = sum[j];
    __syncthreads();
    float all = 0;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) all += sums[i][threadIdx.x];
    to[(long)tile.sentence * WIDTH + threadIdx.x] = all / count;
}

// ---- Attention. A warp has the 16 queries of a tile and one head, and takes 32 keys at a time, whose scores and
// values tensor cores multiply. No memory is shared: columns and keys are numbered so that what a lane needs for a
// product, and what it gets, lies side by side in its row. With g = lane / 4 and q = lane % 4, a lane has of
//   queries and results: columns 8 q to 8 q + 7 of rows g and g + 8
//   keys:                columns 8 q to 8 q + 7 of row g of each 8
//   values:              columns 4 g to 4 g + 3 of rows 2 q, 2 q + 1, 2 q + 8 and 2 q + 9 of each 16

struct KeysAndValues {
    uint4 keys[KEYS / 8];
    uint2 values[KEYS / 16][4];
};

// Past the end of the sentence: its last row, whose weight is 0 there.
__device__ __forceinline__ void load(KeysAndValues& to, const u16* keys, const u16* values, long pitch, int from,
                                     int count) {
    const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < KEYS / 8; i++) {
        to.keys[i] = *(const uint4*)(keys + min(from + 8 * i + g, count - 1) * pitch + 8 * q);
    }
#pragma unroll
    for (int i = 0; i < KEYS / 4; i++) {
        const int row = from + 16 * (i / 4) + 2 * q + i % 4 / 2 * 8 + i % 2;
        to.values[i / 4][i % 4] = *(const uint2*)(values + min(row, count - 1) * pitch + 4 * g);
    }
}

// sum += a x b, of 16 x 16 and 16 x 8 elements.
__device__ __forceinline__ void multiply(float (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ float powerOfTwo(float x) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

// Of the four lanes that have parts of a row.
__device__ __forceinline__ float mostOfRow(float value) {
    value = fmaxf(value, __shfl_xor_sync(ALL, value, 1));
    return fmaxf(value, __shfl_xor_sync(ALL, value, 2));
}

__device__ __forceinline__ float sumOfRow(float value) {
    value += __shfl_xor_sync(ALL, value, 1);
    return value + __shfl_xor_sync(ALL, value, 2);
}

// Eight columns of a query with their bias, scaled so that scores are exponents of 2.
__device__ __forceinline__ uint4 query(const u16* row, const float (&bias)[8]) {
    const float scale = 1.44269504f * 0.17677670f; // log2(e) / sqrt(HEAD)
    const uint4 v = *(const uint4*)row;
    return {narrowed((lower(v.x) + bias[0]) * scale, (upper(v.x) + bias[1]) * scale),
            narrowed((lower(v.y) + bias[2]) * scale, (upper(v.y) + bias[3]) * scale),
            narrowed((lower(v.z) + bias[4]) * scale, (upper(v.z) + bias[5]) * scale),
            narrowed((lower(v.w) + bias[6]) * scale, (upper(v.w) + bias[7]) * scale)};
}

__device__ __forceinline__ void load(float (&to)[8], const float* from) {
    const float4 a = *(const float4*)from, b = *(const float4*)(from + 4);
    to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w;
    to[4] = b.x, to[5] = b.y, to[6] = b.z, to[7] = b.w;
}

// softmax(Q x K^T / sqrt(HEAD)) x V. Columns of qkv: those of this rank's heads of Q, of K and of V, without their
// biases. That of K adds the same to all scores of a query, which softmax ignores. That of V is added at the end, since
// weights add up to 1. Grid: (tiles / 4, rounded up; heads).
extern "C" __global__ void __launch_bounds__(128)
attend(const Tile* tiles, int tileCount, const u16* qkv, long pitch, int columns, const float* bias, u16* to,
       long toPitch) {
    const int index = blockIdx.x * 4 + threadIdx.x / 32, col = blockIdx.y * HEAD;
    if (index >= tileCount) return;
    const Tile& tile = tiles[index];
    const int begin = tile.begin, count = tile.count, firstOfSentence = tile.first - begin;
    if (begin >= count) return;
    const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    const u16* queries = qkv + firstOfSentence * pitch + col;
    const u16* keys = queries + columns;
    const u16* values = keys + columns;

    float added[8];
    load(added, bias + col + 8 * q);
    const uint4 low = query(queries + min(begin + g, count - 1) * pitch + 8 * q, added);
    const uint4 high = query(queries + min(begin + g + 8, count - 1) * pitch + 8 * q, added);
    const u32 q0[4] = {low.x, high.x, low.y, high.y}, q1[4] = {low.z, high.z, low.w, high.w};

    // Of rows g and g + 8.
    const float least = -__int_as_float(0x7f800000);
    float most[2] = {least, least}, sum[2] = {};
    float mixed[4][4] = {}; // [j]: columns 8 q + j and 8 q + 4 + j of row g, then of row g + 8
    KeysAndValues next;
    load(next, keys, values, pitch, 0, count);
    for (int from = 0; from < count; from += KEYS) {
        const KeysAndValues now = next;
        if (from + KEYS < count) load(next, keys, values, pitch, from + KEYS, count);
        float scores[KEYS / 8][4] = {}; // [i]: keys 8 i + 2 q and the next one, of row g, then of row g + 8
#pragma unroll
        for (int i = 0; i < KEYS / 8; i++) {
            multiply(scores[i], q0, now.keys[i].x, now.keys[i].y);
            multiply(scores[i], q1, now.keys[i].z, now.keys[i].w);
        }
        if (from + KEYS > count) {
#pragma unroll
            for (int i = 0; i < 4 * (KEYS / 8); i++) {
                if (from + 8 * (i / 4) + 2 * q + i % 2 >= count) scores[i / 4][i % 4] = least;
            }
        }
#pragma unroll
        for (int row = 0; row < 2; row++) {
            float largest = most[row];
#pragma unroll
            for (int i = 0; i < KEYS / 8; i++) {
                largest = fmaxf(largest, fmaxf(scores[i][2 * row], scores[i][2 * row + 1]));
            }
            largest = mostOfRow(largest);
            const float less = powerOfTwo(most[row] - largest);
            most[row] = largest;
            sum[row] *= less;
#pragma unroll
            for (int i = 0; i < KEYS / 8; i++) {
                float& first = scores[i][2 * row];
                float& second = scores[i][2 * row + 1];
                first = powerOfTwo(first - largest);
                second = powerOfTwo(second - largest);
                sum[row] += first + second;
            }
#pragma unroll
            for (int j = 0; j < 4; j++) {
                mixed[j][2 * row] *= less;
                mixed[j][2 * row + 1] *= less;
            }
        }
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) {
            const float(&s)[4] = scores[2 * i], (&t)[4] = scores[2 * i + 1];
            const u32 weights[4] = {narrowed(s[0], s[1]), narrowed(s[2], s[3]), narrowed(t[0], t[1]),
                                    narrowed(t[2], t[3])};
            const uint2(&v)[4] = now.values[i];
            // A column of two rows that follow each other.
            multiply(mixed[0], weights, __byte_perm(v[0].x, v[1].x, 0x5410), __byte_perm(v[2].x, v[3].x, 0x5410));
            multiply(mixed[1], weights, __byte_perm(v[0].x, v[1].x, 0x7632), __byte_perm(v[2].x, v[3].x, 0x7632));
            multiply(mixed[2], weights, __byte_perm(v[0].y, v[1].y, 0x5410), __byte_perm(v[2].y, v[3].y, 0x5410));
            multiply(mixed[3], weights, __byte_perm(v[0].y, v[1].y, 0x7632), __byte_perm(v[2].y, v[3].y, 0x7632));
        }
    }
    load(added, bias + 2 * columns + col + 8 * q);
#pragma unroll
    for (int row = 0; row < 2; row++) {
        const float factor = 1 / sumOfRow(sum[row]);
        const int place = begin + g + 8 * row;
        float all[8];
#pragma unroll
        for (int j = 0; j < 8; j++) all[j] = mixed[j % 4][2 * row + j / 4] * factor + added[j];
        if (place < count) {
            *(uint4*)(to + (firstOfSentence + place) * toPitch + col + 8 * q) = {
                narrowed(all[0], all[1]), narrowed(all[2], all[3]), narrowed(all[4], all[5]), narrowed(all[6], all[7])};
        }
    }
}
