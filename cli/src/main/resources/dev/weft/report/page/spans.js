// The spans of a timeline as typed arrays, their picture in pixels, and the words for their numbers.

// Kinds of spans by number; 0 is staging.
const WAIT = 1;
const TRANSFER = 2;
const COMPUTE = 3;
const KIND_NAMES = ['Staging', 'Wait', 'Transfer', 'Compute'];

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
 * All spans of one call, by span number: start and end in ns, kind, source; further columns (peer, to, chunk,
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
        this.kind = kind;
        this.source = source;
        this.start = new Float64Array(this.count);
        this.end = new Float64Array(this.count);
        this.order = new Int32Array(this.count);
        this.strips = [];
        this.tracks = [];
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

// Their picture

const LEAST_SEPARATE_PX = 5;
const FILL_LEVELS = 4;

/** The picture of the spans in sight, in pixels of the screen; what it leaves blank is transparent. */
class SpanBitmap {
    constructor() {
        this.canvas = document.createElement('canvas');
        this.pixels = new Uint32Array(0);
    }

    begin(width, height, ratio, colours, theme) {
        this.width = Math.max(1, Math.round(width * ratio));
        this.height = Math.max(1, Math.round(height * ratio));
        if (this.pixels.length === this.width * this.height) {
            this.pixels.fill(0);
        } else {
            this.canvas.width = this.width;
            this.canvas.height = this.height;
            this.pixels = new Uint32Array(this.width * this.height);
        }
        this.hatchEvery = Math.round(6 * ratio);
        this.hatchWidth = Math.round(2 * ratio);
        this.colours = colours.map((colour) => pixelOf(colour));
        this.tints = colours.map((colour) => pixelOf(echarts.color.lerp(0.22, [theme.bg, colour])));
    }

    fill(colour, hatched, from, to, top, height) {
        const left = Math.max(0, from);
        const right = Math.min(this.width, to);
        const bottom = Math.min(this.height, top + height);
        const solid = this.colours[colour];
        const tint = hatched ? this.tints[colour] : solid;
        for (let y = top; y < bottom; y++) {
            const row = y * this.width;
            for (let x = left; x < right; x++) {
                this.pixels[row + x] = hatched && (x + y) % this.hatchEvery >= this.hatchWidth ? tint : solid;
            }
        }
    }

    end() {
        const bytes = new Uint8ClampedArray(this.pixels.buffer);
        this.canvas.getContext('2d').putImageData(new ImageData(bytes, this.width, this.height), 0, 0);
    }
}

/** A colour as canvases keep it in memory, which is red first; all machines that run browsers are little-endian. */
function pixelOf(colour) {
    const [red, green, blue] = echarts.color.parse(colour);
    return ((255 << 24) | (Math.round(blue) << 16) | (Math.round(green) << 8) | Math.round(red)) >>> 0;
}

/**
 * Turns the spans of one strip into boxes, in one pass over those in sight. A span of a pixel or more is a box;
 * finer ones are gathered by pixel column: the source that fills most of the column gives its colour, and the box is
 * as high as the share of the column that is filled, so that a crowd of short spans looks neither full nor empty.
 */
class StripPainter {
    constructor(bitmap, hatched, top, height) {
        this.bitmap = bitmap;
        this.hatched = hatched;
        this.top = top;
        this.height = height;
        this.run = {colour: -1, level: 0, from: 0, to: 0};
        this.column = {x: -1, colour: -1, vote: 0, filled: 0, fine: false};
        this.done = -Infinity;
    }

    add(colour, from, to) {
        if (to - from >= 1) {
            this.addWide(colour, from, to);
        } else {
            const column = Math.floor(from);
            const next = Math.floor(to);
            this.addToColumn(colour, column, Math.min(to, column + 1) - from, true);
            if (next > column && to > next) {
                this.addToColumn(colour, next, to - next, true);
            }
        }
    }

    addWide(colour, from, to) {
        const left = Math.max(Math.round(from), this.done);
        const right = Math.max(Math.round(to), left);
        if (left > from) {
            this.addToColumn(colour, left - 1, left - from, false);
        }
        this.flushColumn(left);
        if (right - left >= LEAST_SEPARATE_PX) {
            this.flushRun();
            this.emit(colour, FILL_LEVELS, left, right - 1);
        } else {
            this.extend(colour, FILL_LEVELS, left, right);
        }
        this.done = right;
        if (to > right) {
            this.addToColumn(colour, right, to - right, false);
        }
    }

    /** The rest of a wide span fills its column up, but does not make one of its own: fine spans do. */
    addToColumn(colour, x, share, fine) {
        if (x < this.done) {
            return;
        }
        const column = this.column;
        if (x !== column.x) {
            this.flushColumn(x);
            column.x = x;
            column.colour = colour;
            column.vote = 0;
            column.filled = 0;
            column.fine = false;
        }
        column.fine = column.fine || fine;
        column.filled += share;
        column.vote += column.colour === colour ? share : -share;
        if (column.vote < 0) {
            column.colour = colour;
            column.vote = -column.vote;
        }
    }

    /** Draws the column at hand if it lies before an x; a wide span that covers it replaces it. */
    flushColumn(before) {
        const {x, colour, filled, fine} = this.column;
        if (fine && x >= 0 && x < before) {
            const level = Math.min(FILL_LEVELS, Math.max(1, Math.ceil(filled * FILL_LEVELS - 0.2)));
            this.extend(colour, level, x, x + 1);
            this.done = x + 1;
        }
        this.column.x = -1;
    }

    extend(colour, level, from, to) {
        const run = this.run;
        if (run.colour === colour && run.level === level && run.to >= from) {
            run.to = to;
            return;
        }
        this.flushRun();
        run.colour = colour;
        run.level = level;
        run.from = from;
        run.to = to;
    }

    flushRun() {
        const {colour, level, from, to} = this.run;
        if (colour >= 0) {
            this.emit(colour, level, from, to);
        }
        this.run.colour = -1;
    }

    emit(colour, level, from, to) {
        const height = Math.max(1, Math.round((this.height * level) / FILL_LEVELS));
        this.bitmap.fill(colour, this.hatched, from, to, this.top + this.height - height, height);
    }

    finish() {
        this.flushColumn(Infinity);
        this.flushRun();
    }
}

// Words for numbers

function withDigits(value, digits) {
    const magnitude = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
    const decimals = Math.min(6, Math.max(0, digits - 1 - magnitude));
    return value.toLocaleString('en-US', {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
}

function formatScaled(value, units, step, digits) {
    let unit = 0;
    while (unit < units.length - 1 && Math.abs(value) >= step * 0.9995) {
        value /= step;
        unit++;
    }
    return `${Number.isInteger(value) ? value.toLocaleString('en-US') : withDigits(value, digits)} ${units[unit]}`;
}

function formatNs(ns) {
    return formatScaled(ns, ['ns', 'µs', 'ms', 's'], 1000, 3);
}

function formatUs(us) {
    return formatNs(us * 1000);
}

function formatBytes(bytes) {
    return formatScaled(bytes, ['B', 'KiB', 'MiB', 'GiB', 'TiB'], 1024, 3);
}

function formatCount(count) {
    return count.toLocaleString('en-US');
}

/** Bytes per ns are GB/s, and operations per ns are GFLOP/s. */
function formatRate(amount, ns, unit) {
    return ns > 0 ? `${withDigits(amount / ns, 3)} ${unit}` : `over too fast to tell ${unit}`;
}

/** A time that is a multiple of something round, with the decimals that this takes. */
function formatRound(ns) {
    const [size, name] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']].find(([unit]) => ns >= unit) || [1, 'ns'];
    return `${Number((ns / size).toPrecision(12))} ${name}`;
}

/** Times along an axis that shows spanNs in all, with as many decimals as its steps need. */
function formatTick(ns, spanNs) {
    const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
    const [size, name] = units.find(([unit]) => spanNs >= unit * 2) || units[3];
    const decimals = Math.max(0, Math.ceil(-Math.log10(spanNs / size / 10)));
    return `${(ns / size).toFixed(decimals)} ${name}`;
}
