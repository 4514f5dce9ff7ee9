// The spans of a timeline as typed arrays.

// Kinds of spans by number; 0 is staging.
const WAIT = 1;
const TRANSFER = 2;
const COMPUTE = 3;
const KIND_NAMES = ['Staging', 'Wait', 'Transfer', 'Compute'];

// Added to the kind of a span whose times are estimated.
const ESTIMATED = 4;

// A rank has one row for each of these; staging moves rows too, so it lies with the transfers.
const ROW_NAMES = ['transfers', 'waits', 'compute'];
const ROW_OF_KIND = [0, 1, 0, 2];

function bytesOfBase64(text) {
    if (Uint8Array.fromBase64) {
        return Uint8Array.fromBase64(text);
    }
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < bytes.length; i++) {
        bytes[i] = binary.charCodeAt(i);
    }
    return bytes;
}

async function inflate(bytes) {
    const stream = new DecompressionStream('deflate');
    const writer = stream.writable.getWriter();
    // Broken bytes fail the reader below too: one report of them is enough.
    writer.write(bytes).catch(() => {});
    writer.close().catch(() => {});
    return new Response(stream.readable).arrayBuffer();
}

async function readColumn(timeline, name) {
    let column;
    try {
        column = new Int32Array(await inflate(bytesOfBase64(timeline.columns[name])));
    } catch (error) {
        throw new Error(`its column ${name} cannot be unpacked`, {cause: error});
    }
    if (column.length !== timeline.spanCount) {
        throw new Error(`its column ${name} has ${column.length} values for ${timeline.spanCount} spans`);
    }
    return column;
}

/** First index in [first, last) of which at(index) is above value, where at never falls. */
function firstAbove(first, last, value, at) {
    while (first < last) {
        const middle = (first + last) >>> 1;
        if (at(middle) > value) {
            last = middle;
        } else {
            first = middle + 1;
        }
    }
    return first;
}

/**
 * All spans of one call, by span number: start and end in ns, kind, isEstimated, source; further columns (peer, to, chunk,
 * firstRow, rows, bytes) once loadDetails() is done. A strip is the spans of one track that lie in one row, in
 * order of time: {rank, row, slot, track, first, last}, order[first..last) being their numbers.
 */
class Spans {
    static async read(timeline) {
        const names = ['gap', 'length', 'kind', 'source'];
        const [gap, length, kind, source] = await Promise.all(names.map((name) => readColumn(timeline, name)));
        return new Spans(timeline, gap, length, kind, source);
    }

    constructor(timeline, gap, length, kind, source) {
        this.timeline = timeline;
        this.count = timeline.spanCount;
        this.kind = kind.map((value) => value % ESTIMATED);
        this.isEstimated = kind.map((value) => (value >= ESTIMATED ? 1 : 0));
        this.hasEstimated = this.isEstimated.includes(1);
        this.source = source;
        this.start = new Float64Array(this.count);
        this.end = new Float64Array(this.count);
        this.order = new Int32Array(this.count);
        this.strips = [];
        this.tracks = [];
        this.calls = timeline.calls || [];
        this.critical = timeline.critical || [];
        this.isCritical = new Uint8Array(this.count);
        for (const span of this.critical) {
            this.isCritical[span] = 1;
        }
        this.placeTracks(gap, length);
        this.numberSources();
    }

    /** Reads what only hovering needs, so that the first picture need not wait for it. */
    async loadDetails() {
        const names = ['peer', 'to', 'chunk', 'firstRow', 'rows', 'bytes'];
        const columns = await Promise.all(names.map((name) => readColumn(this.timeline, name)));
        names.forEach((name, i) => { this[name] = columns[i]; });
    }

    placeTracks(gap, length) {
        let first = 0;
        this.timeline.ranks.forEach((rank, rankIndex) => {
            const slots = [0, 0, 0];
            for (const track of rank.tracks) {
                const last = first + track.spans;
                this.placeTimes(first, last, gap, length);
                this.placeStrips(first, last, rankIndex, track.name, slots);
                first = last;
            }
        });
        if (first !== this.count) {
            throw new Error(`its tracks have ${first} spans in all, not ${this.count}`);
        }
    }

    placeTimes(first, last, gap, length) {
        const unit = this.timeline.unitNs;
        let time = 0;
        for (let i = first; i < last; i++) {
            time += gap[i];
            this.start[i] = time * unit;
            time += length[i];
            this.end[i] = time * unit;
        }
    }

    placeStrips(first, last, rank, track, slots) {
        const byRow = [null, null, null];
        const counts = [0, 0, 0];
        for (let i = first; i < last; i++) {
            counts[ROW_OF_KIND[this.kind[i]]]++;
        }
        let at = first;
        counts.forEach((count, row) => {
            if (count > 0) {
                byRow[row] = {rank, row, slot: slots[row]++, track, first: at, last: at};
                this.strips.push(byRow[row]);
                at += count;
            }
        });
        for (let i = first; i < last; i++) {
            this.order[byRow[ROW_OF_KIND[this.kind[i]]].last++] = i;
        }
        this.tracks.push({first, last, byRow});
    }

    /** Colours go by a source's place among all sources and ranks, since world numbers may have gaps. */
    numberSources() {
        const seen = [];
        this.timeline.ranks.forEach((rank) => { seen[rank.rank] = true; });
        for (let i = 0; i < this.count; i++) {
            if (this.source[i] >= 0) {
                seen[this.source[i]] = true;
            }
        }
        this.sources = Object.keys(seen).map(Number);
        this.sourceIndex = new Map(this.sources.map((source, i) => [source, i]));
    }

    /** Rows that any rank has spans in, from top to bottom. */
    rowsUsed() {
        return ROW_NAMES.map((_, row) => row).filter((row) => this.strips.some((strip) => strip.row === row));
    }

    stripOf(span) {
        const track = this.tracks[firstAbove(0, this.tracks.length, span, (i) => this.tracks[i].last)];
        return track.byRow[ROW_OF_KIND[this.kind[span]]];
    }

    /** Place in order of the first span of a strip that may reach past a time. */
    firstVisible(strip, time) {
        const after = firstAbove(strip.first, strip.last, time, (i) => this.start[this.order[i]]);
        return Math.max(strip.first, after - 1);
    }

    /** The span of a strip at a time, or the nearest within reach of it, or null. */
    spanAt(strip, time, reach) {
        const near = this.firstVisible(strip, time);
        let best = null;
        let bestDistance = reach;
        for (let i = Math.max(strip.first, near - 2); i < Math.min(strip.last, near + 3); i++) {
            const span = this.order[i];
            const distance = Math.max(this.start[span] - time, time - this.end[span], 0);
            if (distance < bestDistance || (distance <= reach && best === null)) {
                best = span;
                bestDistance = distance;
            }
        }
        return best;
    }
}
