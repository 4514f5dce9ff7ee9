// Where the rows of a timeline lie.

const PLOT_TOP = 62;
const PLOT_BOTTOM = 10;
const CALL_NAMES_PX = 22;
const LEAST_ROW_PX = 6;
const LEAST_SLOT_PX = 3;

/** Where rows lie and which spans are in sight; knows pixels, but neither ECharts nor the page. */
class TimelineLayout {
    constructor(spans) {
        this.spans = spans;
        this.rows = spans.rowsUsed();
        const ranks = spans.timeline.ranks.length;
        const slots = largestOf([1, ...spans.strips.map((strip) => strip.slot + 1)]);
        const roomy = Math.max(24, Math.min(8, slots) * 7);
        const share = 660 / (ranks * Math.max(1, this.rows.length));
        this.rowPx = Math.round(Math.max(LEAST_ROW_PX, Math.min(roomy, share)));
        this.marginPx = this.rowPx > 10 ? 7 : 2;
        this.rankPx = this.rows.length * (this.rowPx + 1) - 1 + 2 * this.marginPx;
        this.bottomPx = PLOT_BOTTOM + (spans.calls.length > 0 ? CALL_NAMES_PX : 0);
        this.height = PLOT_TOP + this.bottomPx + ranks * this.rankPx;
        this.slotsOf = this.countSlots();
        this.byRow = this.groupByRow();
        this.downwards = [...spans.strips].sort((a, b) => a.rank - b.rank || a.row - b.row || a.slot - b.slot);
    }

    countSlots() {
        const counts = new Map();
        for (const {rank, row} of this.spans.strips) {
            counts.set(rank * 3 + row, (counts.get(rank * 3 + row) || 0) + 1);
        }
        return counts;
    }

    groupByRow() {
        const rows = new Map();
        for (const strip of this.spans.strips) {
            const key = strip.rank * 3 + strip.row;
            rows.set(key, [...(rows.get(key) || []), strip]);
        }
        return rows;
    }

    /** Top and height of a strip, from the top of the plot: its own slot where slots fit, else the whole row. */
    band(strip) {
        const top = strip.rank * this.rankPx + this.marginPx + this.rows.indexOf(strip.row) * (this.rowPx + 1);
        const slotPx = this.rowPx / this.slotsOf.get(strip.rank * 3 + strip.row);
        if (slotPx < LEAST_SLOT_PX) {
            return {top, height: this.rowPx};
        }
        const from = Math.round(strip.slot * slotPx);
        const to = Math.round((strip.slot + 1) * slotPx);
        return {top: top + from, height: to - from - (slotPx < this.rowPx && slotPx > 5 ? 1 : 0)};
    }

    stripsAt(y) {
        const rank = Math.floor(y / this.rankPx);
        const within = y - rank * this.rankPx - this.marginPx;
        const row = this.rows[Math.max(0, Math.min(this.rows.length - 1, Math.floor(within / (this.rowPx + 1))))];
        const strips = this.byRow.get(rank * 3 + row) || [];
        const hit = strips.filter((strip) => {
            const {top, height} = this.band(strip);
            return y >= top - 1 && y < top + height + 1;
        });
        return hit.length > 0 ? hit : strips;
    }

    /** The span before (-1) or after (1) another one in its row, or the same at the row's end. */
    besides(span, direction) {
        const {order} = this.spans;
        const {first, last} = this.spans.stripOf(span);
        const place = firstAbove(first, last, span - 1, (i) => order[i]) + direction;
        return order[Math.max(first, Math.min(last - 1, place))];
    }

    /** The span at the same time in the row above (-1) or below (1), or the same in the outermost row. */
    beyond(span, direction) {
        const {down, time} = this.placeOf(span);
        return this.spanNear({down: down + direction, time}) ?? span;
    }

    placeOf(span) {
        return {down: this.downwards.indexOf(this.spans.stripOf(span)),
            time: (this.spans.start[span] + this.spans.end[span]) / 2};
    }

    /** The span nearest to a place, or null where there is no such row. */
    spanNear({down, time}) {
        const strip = this.downwards[down];
        return strip ? this.spans.spanAt(strip, time, Infinity) : null;
    }

    firstSpan() {
        return this.downwards.length > 0 ? this.spans.order[this.downwards[0].first] : null;
    }

    /** Draws the spans in sight; ratio is that of the screen's pixels to those of the page. */
    paint(view, bitmap, ratio) {
        const {spans} = this;
        const place = [];
        spans.sources.forEach((source, i) => { place[source] = i; });
        const scale = view.scale * ratio;
        for (const strip of spans.strips) {
            const {top, height} = this.band(strip);
            const from = Math.round(top * ratio);
            const painter = new StripPainter(bitmap, strip.row === 1, from, Math.round((top + height) * ratio) - from);
            for (let i = spans.firstVisible(strip, view.from); i < strip.last; i++) {
                const span = spans.order[i];
                if (spans.start[span] > view.to) {
                    break;
                }
                const left = Math.max(0, (spans.start[span] - view.from) * scale);
                const right = Math.min(bitmap.width, (spans.end[span] - view.from) * scale);
                // Spans without length, as the simulator has for rows that are multiplied with others, are no picture.
                if (right > left) {
                    const pale = spans.isEstimated[span] ? spans.sources.length : 0;
                    painter.add((place[spans.source[span]] || 0) + pale, left, right);
                }
            }
            painter.finish();
        }
    }

    /** Outlines of the critical spans in sight, those closer than a pixel as one, and lines from row to row. */
    criticalMarks(view) {
        const boxes = [];
        const lines = [];
        let last = null;
        for (const span of this.spans.critical) {
            const strip = this.spans.stripOf(span);
            const band = this.band(strip);
            const mark = {strip, y: view.y + band.top, height: band.height,
                from: view.px(this.spans.start[span]), to: view.px(this.spans.end[span])};
            if (last && last.strip === strip && mark.from - last.to < 1) {
                last.to = mark.to;
                continue;
            }
            if (last) {
                this.closeMark(last, view, boxes);
                this.joinMarks(last, mark, view, lines);
            }
            last = mark;
        }
        if (last) {
            this.closeMark(last, view, boxes);
        }
        return {boxes, lines};
    }

    closeMark(mark, view, boxes) {
        const from = Math.max(mark.from, view.left - 4);
        const to = Math.min(Math.max(mark.to, mark.from + 1), view.right + 4);
        if (to > from) {
            boxes.push(Math.round(from) + 0.5, mark.y + 0.5, Math.max(1, Math.round(to - from) - 1), mark.height - 1);
        }
    }

    joinMarks(one, next, view, lines) {
        const from = Math.min(one.to, next.from);
        const to = Math.max(one.to, next.from);
        if (one.strip !== next.strip && to >= view.left && from <= view.right) {
            lines.push(one.to, one.y + one.height / 2, next.from, next.y + next.height / 2);
        }
    }
}
