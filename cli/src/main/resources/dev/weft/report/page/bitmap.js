// The picture of spans in pixels, and the hatching of waits in all charts.

const LEAST_SEPARATE_PX = 5;
const FILL_LEVELS = 4;
const HATCH_PX = 6;

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
        this.hatchEvery = Math.round(HATCH_PX * ratio);
        this.hatchWidth = Math.round(2 * ratio);
        // Those of measured spans, and behind them, lighter, those of estimated ones.
        const all = [...colours, ...colours.map((colour) => paleColour(colour, theme))];
        this.colours = all.map((colour) => pixelOf(colour));
        this.tints = all.map((colour) => pixelOf(echarts.color.lerp(0.22, [theme.bg, colour])));
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

/** The colour of spans whose times are estimated. */
function paleColour(colour, theme) {
    return echarts.color.lerp(0.45, [theme.bg, colour]);
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

const hatches = new Map();

/** The hatching of waits as a fill, in the colour of a source, for charts that ECharts draws. */
function hatchPattern(colour, theme) {
    const key = `${colour} on ${theme.bg}`;
    if (!hatches.has(key)) {
        const tile = new SpanBitmap();
        tile.begin(HATCH_PX, HATCH_PX, 1, [colour], theme);
        tile.fill(0, true, 0, HATCH_PX, 0, HATCH_PX);
        tile.end();
        hatches.set(key, {image: tile.canvas, repeat: 'repeat'});
    }
    return hatches.get(key);
}
