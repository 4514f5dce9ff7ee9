// What every gated kernel is given, and the one gate. On the Java side, in dev.weft.cuda, GatedProduct writes the same
// bytes of Schedule and Source, TileSchedule those of Tile and Gate, and StallWord reads those of Stall.
//
// Kernels that are compiled with SUMS also continue sums of ranks before this one, and tell of every tile that is stored.
// Compiled by NVRTC without any header of the toolkit, so everything that is needed is declared here.
#pragma once

#ifndef CLUSTER
#define CLUSTER 1 // thread blocks that work on one tile
#endif
#ifndef SUMS
#define SUMS 0 // 1: a tile may start from fp32 sums in memory, and its end is counted
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// One piece of the product: rows [row, row + rows) of C, columns [col, col + width). 32 bytes. In a schedule no tile is
// wider than one before it.
struct __align__(16) Tile {
    int row;       // first row in C
    int rows;      // rows to store; the tile may be taller
    int col;       // first column in C and in B
    int width;     // columns of the tile
    int source;    // where its rows of A lie: index of a Source, and of a tensor map
    int sourceRow; // first row there
    int gate;      // its gates are gates[gate] to gates[gate + gates - 1], by ascending kBlock
    int gates;
};

// Before K block `kBlock` of a tile is loaded, word `word` must have reached epoch x perCall + offset: a flag the epoch
// itself, a counter behind the flags what its lane has brought by then. 20 bytes.
struct Gate {
    int kBlock;  // in units of 64 columns of A
    int word;    // index among flags and counters
    int perCall; // what the word grows by with every call
    int offset;
    int flag; // of the chunk that it is about, for the host
};

// A matrix whose rows are `pitch` bytes apart. 16 bytes.
struct Source {
    const void* data;
    u64 pitch;
};

// Written once, by the first wait that runs out of time or meets a corrupt word, into host memory that the device can reach. 32 bytes.
struct Stall {
    u32 raised; // written last, released to the system
    u32 block;  // thread block that waited
    u32 tile;
    u32 flag;
    u32 seen;     // the flag's value when time ran out
    u32 expected; // the epoch, or what a counter should have reached
    u32 pad[2];
};

// By the device's clock, in ns. 16 bytes.
struct Period {
    u64 begin, end;
};

// 128 bytes. The pointers from `busy` on say where the kernel keeps times, each of which one thread writes; the host
// reads them when somebody asks for a timeline. What is older than a call was not written by it.
struct Schedule {
    const Tile* tiles;
    const Gate* gates;
    const u32* flags;
    u32* stalled;       // device memory: 0, or 1 after a wait ran out of time; from then on nobody waits
    Stall* stall;       // host memory
    u64 deadlineNs;     // longest wait for one flag
    u32 epoch;          // what a flag must have reached
    int tileCount;
    int kBlocks;
    int startsFromSums; // 0: tiles start from zero
    const int* signals; // by tile: index of the counter that grows when it is stored, or -1; null: none
    u32* counters;
    Period* busy;       // by tile: when its worker had it; null: no times are kept
    Period* waits;      // by tile and gate modulo gatesPerTile: when its loads stood still there
    const int* watched; // flags whose arrival is timed, those of one lane of 32 threads in the order of arrival; or -1
    u64* arrivals;      // by place in the list
    int gatesPerTile;   // at most
    int watchedCount;   // a multiple of 32
    u32 callsAhead;     // that a word's writer can be; what is further on is corrupt
    int rowLimit;       // rows of C from this one on are in no tile
};

// Of what lies in shared memory.
__device__ __forceinline__ u32 sharedAddress(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ Tile tileAt(const Schedule& s, int t) {
    const int4* words = (const int4*)(s.tiles + t);
    int4 x = __ldg(words), y = __ldg(words + 1);
    return {x.x, min(x.y, s.rowLimit - x.x), x.z, x.w, y.x, y.y, y.z, y.w};
}

__device__ __forceinline__ u32 flagAcquire(const u32* flag) {
    u32 value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

__device__ __forceinline__ u64 nowNs() {
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// Words count up from call to call and are never reset, so the comparison goes round the 32-bit range. One that is
// further on than its writer can be, `lead`, was overwritten by somebody else and opens no gate.
__device__ __forceinline__ bool reached(u32 seen, u32 value, u32 lead) { return seen - value <= lead; }

// How far a gate's word can be past what it waits for: at the end of the calls that may be ahead.
__device__ __forceinline__ u32 leadOf(const Schedule& s, const Gate* gate) {
    return s.callsAhead * gate->perCall - gate->offset;
}

__device__ __noinline__ void raiseStall(const Schedule& s, int tile, int flag, u32 seen, u32 expected) {
    if (atomicCAS(s.stalled, 0u, 1u) != 0u) return;
    volatile Stall* stall = s.stall;
    stall->block = blockIdx.x;
    stall->tile = tile;
    stall->flag = flag;
    stall->seen = seen;
    stall->expected = expected;
    __threadfence_system();
    stall->raised = 1u;
}

__device__ __forceinline__ void waitAtGate(const Schedule& s, int tile, int number) {
    const Gate* gate = s.gates + number;
    const u32* word = s.flags + gate->word;
    const u32 value = s.epoch * gate->perCall + gate->offset;
    const u64 start = nowNs();
    while (true) {
        __nanosleep(20);
        const u32 seen = flagAcquire(word);
        if (reached(seen, value, leadOf(s, gate))) break;
        if (*(volatile u32*)s.stalled != 0u) return;
        const bool corrupt = (int)(seen - value) > 0;
        if (corrupt || nowNs() - start > s.deadlineNs) {
            raiseStall(s, tile, gate->flag, seen, value);
            return;
        }
    }
    // One block of a cluster speaks for all.
    if (s.busy != nullptr && blockIdx.x % CLUSTER == 0) {
        s.waits[tile * s.gatesPerTile + number % s.gatesPerTile] = {start, nowNs()};
    }
}

// Waits for one gate, by one thread. Acquire: pairs with the copy, or the write in stream order, that published the word
// after the chunk's bytes. Past the deadline, or at a corrupt word, the wait ends, as do all others, and the grid drains
// with a result that the host throws away.
__device__ __forceinline__ void awaitGate(const Schedule& s, int tile, int number) {
    const Gate* gate = s.gates + number;
    const u32 value = s.epoch * gate->perCall + gate->offset;
    if (!reached(flagAcquire(s.flags + gate->word), value, leadOf(s, gate))) waitAtGate(s, tile, number);
}

// A worker begins with a tile, by one thread.
__device__ __forceinline__ void tileBegins(const Schedule& s, int tile) {
    if (s.busy != nullptr) s.busy[tile].begin = nowNs();
}

__device__ __forceinline__ void tileEnds(const Schedule& s, int tile) {
    if (s.busy != nullptr) s.busy[tile].end = nowNs();
}

// One warp that has nothing else to do: when did which chunk arrive? Only times are read off the flags, no rows.
__device__ __forceinline__ void watchArrivals(const Schedule& s) {
    for (int i = threadIdx.x % 32; i < s.watchedCount; i += 32) {
        const int flag = s.watched[i];
        if (flag < 0) continue;
        const u64 start = nowNs();
        while (!reached(*(volatile const u32*)(s.flags + flag), s.epoch, s.callsAhead)) {
            if (*(volatile u32*)s.stalled != 0u || nowNs() - start > s.deadlineNs) return;
            __nanosleep(200);
        }
        s.arrivals[i] = nowNs();
    }
}

// The device's clock now, for the host.
extern "C" __global__ void read_clock(u64* now) { *now = nowNs(); }

#if SUMS
// A part of K, of another rank: its A is the next source, its B the next of several. 8 bytes.
struct Part {
    int endBlock; // where it ends among all K blocks of a tile
    int k;        // its columns of A
};

// One thread, once all that it tells of is stored: by itself, or by threads that it has met at a barrier since. Release:
// pairs with the wait for the counter's value of the stream that copies the rows away.
__device__ __forceinline__ void countStored(const Schedule& s, int counter) {
    asm volatile("red.release.sys.global.add.u32 [%0], 1;" ::"l"(s.counters + counter) : "memory");
}
#endif
