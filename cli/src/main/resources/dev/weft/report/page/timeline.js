// The timeline of every rank. ECharts has the axes, zoom, critical path and layers; the spans are one image in a custom
// series, written pixel by pixel: paths of a hundred thousand boxes took the browser about three times as long.

const PLOT_TOP = 62;
const PLOT_BOTTOM = 10;
const LEAST_ROW_PX = 6;
const LEAST_SLOT_PX = 3;

/** Many boxes as one path: shape.boxes holds x, y, width, height of each, shape.lines x1, y1, x2, y2. */
function registerTimelineShape() {
    echarts.graphic.registerShape('weftBoxes', echarts.graphic.extendShape({
        shape: {boxes: [], lines: [], plot: null},
        buildPath(path, shape) {
            const {boxes, lines} = shape;
            for (let i = 0; i < boxes.length; i += 4) {
                path.rect(boxes[i], boxes[i + 1], boxes[i + 2], boxes[i + 3]);
            }
            for (let i = 0; i < lines.length; i += 4) {
                path.moveTo(lines[i], lines[i + 1]);
                path.lineTo(lines[i + 2], lines[i + 3]);
            }
        },
        // Without this, ECharts would walk every path a second time to measure it.
        getBoundingRect() {
            const plot = this.shape.plot;
            return new echarts.graphic.BoundingRect(plot.x, plot.y, plot.width, plot.height);
        },
    }));
}

/** Where rows lie and which spans are in sight; knows pixels, but neither ECharts nor the page. */
class TimelineLayout {
    constructor(spans) {
        this.spans = spans;
        this.rows = spans.rowsUsed();
        const ranks = spans.timeline.ranks.length;
        const slots = Math.max(1, ...spans.strips.map((strip) => strip.slot + 1));
        const roomy = Math.max(24, Math.min(8, slots) * 7);
        const share = 660 / (ranks * Math.max(1, this.rows.length));
        this.rowPx = Math.round(Math.max(LEAST_ROW_PX, Math.min(roomy, share)));
        this.marginPx = this.rowPx > 10 ? 7 : 2;
        this.rankPx = this.rows.length * (this.rowPx + 1) - 1 + 2 * this.marginPx;
        this.height = PLOT_TOP + PLOT_BOTTOM + ranks * this.rankPx;
        this.slotsOf = this.countSlots();
        this.byRow = this.groupByRow();
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
                    painter.add(place[spans.source[span]] || 0, left, right);
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

/** The chart of one call's timeline in a host element: drawing, zoom, hover and keys. */
class Timeline {
    constructor(host, spans, zoom, onColours) {
        this.host = host;
        this.onColours = () => onColours(this);
        this.spans = spans;
        this.layout = new TimelineLayout(spans);
        this.bitmap = new SpanBitmap();
        this.endNs = Math.max(1, spans.timeline.endNs);
        this.zoom = zoom || [0, 100];
        this.showCritical = spans.critical.length > 0;
        this.step = -1;
        host.style.height = `${this.layout.height}px`;
        this.chart = addChart(host, () => this.option());
        this.chart.on('datazoom', () => {
            const {start, end} = this.chart.getOption().dataZoom[0];
            this.zoom = [start, end];
            this.unmark();
        });
        // Two frames, dark in light, stand out from every colour; on a layer of their own, so that hovering redraws
        // nothing else.
        this.marker = [5, 2].map((lineWidth) => new echarts.graphic.Rect(
            {silent: true, invisible: true, zlevel: 1, z2: -lineWidth, style: {fill: 'none', lineWidth}}));
        this.marker.forEach((frame) => this.chart.getZr().add(frame));
        this.listen();
    }

    // Drawing

    option() {
        const theme = pageTheme();
        this.colours = sourceColours(this.spans.sources.length, theme);
        this.view = null;
        this.onColours();
        const range = {start: this.zoom[0], end: this.zoom[1], filterMode: 'none', throttle: 16,
            minSpan: Math.min(100, (2000 * this.spans.timeline.unitNs) / this.endNs)};
        return {
            animation: false,
            grid: {left: this.labelPx(), right: 14, top: PLOT_TOP, bottom: PLOT_BOTTOM},
            xAxis: this.timeAxis(theme),
            yAxis: this.rankAxis(theme),
            dataZoom: [
                {...range, type: 'inside', zoomOnMouseWheel: 'ctrl', moveOnMouseMove: true, moveOnMouseWheel: false},
                {...range, ...sliderLook(theme), labelFormatter: (value) => formatTick(value, this.endNs / 10)},
            ],
            series: [
                this.series('bands', 1, 1, (view) => this.bandItem(view, theme)),
                this.series('spans', 2, 1, ({plot}) => ({type: 'image', style: {image: this.bitmap.canvas, ...plot}})),
                this.series('critical', 3, this.showCritical ? 2 : 0, (view, i) => this.criticalItem(view, i, theme)),
            ],
        };
    }

    series(name, z, count, item) {
        return {
            name, z, type: 'custom', silent: true, clip: true, animation: false,
            data: Array.from({length: count}, (_, i) => [0, 0, i]),
            encode: {x: 0, y: 1},
            renderItem: (params, api) => item(this.viewFor(params, api), params.dataIndex),
        };
    }

    /** What is in sight, and its picture: made once for each change of zoom or size. */
    viewFor(params, api) {
        const {x, y, width, height} = params.coordSys;
        const zero = api.coord([0, 0])[0];
        const scale = (api.coord([this.endNs, 0])[0] - zero) / this.endNs;
        const old = this.view;
        if (old && old.zero === zero && old.scale === scale && old.left === x && old.right === x + width) {
            return old;
        }
        const view = {zero, scale, y, left: x, right: x + width, plot: {x, y, width, height},
            px: (ns) => zero + ns * scale, ns: (px) => (px - zero) / scale};
        view.from = view.ns(view.left);
        view.to = view.ns(view.right);
        const ratio = window.devicePixelRatio || 1;
        this.bitmap.begin(width, height, ratio, this.colours, pageTheme());
        this.layout.paint(view, this.bitmap, ratio);
        this.bitmap.end();
        this.view = view;
        return view;
    }

    /** The length of each rank's call: what is left blank in it is idle. */
    bandItem(view, theme) {
        const boxes = [];
        this.spans.timeline.ranks.forEach((rank, i) => {
            const from = Math.max(view.left, view.px(rank.startNs));
            const to = Math.min(view.right, view.px(rank.endNs));
            const margin = Math.max(1, this.layout.marginPx - 3);
            if (to > from) {
                boxes.push(from, view.y + i * this.layout.rankPx + margin, to - from, this.layout.rankPx - 2 * margin);
            }
        });
        return boxesItem(view, {boxes}, {fill: theme.band});
    }

    criticalItem(view, part, theme) {
        if (part === 0) {
            view.marks = this.layout.criticalMarks(view);
            return boxesItem(view, {lines: view.marks.lines}, {stroke: theme.ink, lineWidth: 1, fill: 'none'});
        }
        return boxesItem(view, {boxes: view.marks.boxes}, {stroke: theme.ink, lineWidth: 1.5, fill: 'none'});
    }

    labelPx() {
        return this.layout.rowPx < 12 || this.host.clientWidth < 600 ? 58 : 132;
    }

    timeAxis(theme) {
        return {
            type: 'value', min: 0, max: this.endNs, position: 'top', splitNumber: this.host.clientWidth < 600 ? 3 : 8,
            axisLine: {show: false}, axisTick: {show: false},
            splitLine: {lineStyle: {color: theme.rule}},
            axisLabel: {color: theme.muted, fontSize: 12, showMinLabel: false, showMaxLabel: false, hideOverlap: true,
                formatter: formatRound},
        };
    }

    rankAxis(theme) {
        const {rows, rowPx} = this.layout;
        const long = this.labelPx() > 100;
        const middle = (rows.length - 1) >> 1;
        const line = (rank, row, i) => `{rank|${i === middle ? `rank ${rank}` : ''}}{row|${ROW_NAMES[row]}}`;
        const label = (rank) => (long ? rows.map((row, i) => line(rank, row, i)).join('\n') : `rank ${rank}`);
        const lineHeight = rowPx + 1;
        return {
            type: 'category', inverse: true, data: this.spans.timeline.ranks.map((rank) => label(rank.rank)),
            axisLine: {show: false}, axisTick: {show: false},
            splitLine: {show: true, lineStyle: {color: theme.rule}},
            axisLabel: {
                color: theme.ink, fontSize: rowPx < 8 ? 10.5 : 12, interval: 0, margin: 10, lineHeight,
                rich: {
                    rank: {width: 58, align: 'left', color: theme.ink, fontSize: 13, fontWeight: 600, lineHeight},
                    row: {width: 58, align: 'right', color: theme.muted, fontSize: 11, lineHeight},
                },
            },
        };
    }

    // Zoom

    zoomTo(start, end) {
        const width = Math.min(100, Math.max(end - start, 1e-7));
        const from = Math.max(0, Math.min(100 - width, start));
        this.chart.dispatchAction({type: 'dataZoom', start: from, end: from + width});
    }

    zoomBy(factor) {
        const [start, end] = this.zoom;
        const middle = (start + end) / 2;
        const half = Math.min(50, ((end - start) * factor) / 2);
        this.zoomTo(middle - half, middle + half);
    }

    panBy(share) {
        const [start, end] = this.zoom;
        const shift = (end - start) * share;
        this.zoomTo(start + shift, end + shift);
    }

    toggleCritical() {
        this.showCritical = !this.showCritical;
        redrawChart(this.chart);
        return this.showCritical;
    }

    // Spans and places

    spanAt(clientX, clientY) {
        const box = this.host.getBoundingClientRect();
        const x = clientX - box.left;
        const y = clientY - box.top - PLOT_TOP;
        const {view} = this;
        if (!view || x < view.left || x > view.right || y < 0 || y >= view.plot.height) {
            return null;
        }
        const time = view.ns(x);
        // Where tracks lie over each other, the span that decides the call's length is the one to tell of.
        const distance = (span) => Math.max(this.spans.start[span] - time, time - this.spans.end[span], 0)
            - (this.spans.isCritical[span] ? 1e-3 : 0);
        return this.layout.stripsAt(y)
            .map((strip) => this.spans.spanAt(strip, time, 2 / view.scale))
            .filter((span) => span !== null)
            .reduce((best, span) => (best === null || distance(span) < distance(best) ? span : best), null);
    }

    rowPoint(span) {
        const box = this.host.getBoundingClientRect();
        const {top, height} = this.layout.band(this.spans.stripOf(span));
        const middle = (this.spans.start[span] + this.spans.end[span]) / 2;
        return {x: box.left + this.view.px(middle), y: box.top + PLOT_TOP + top + height / 2};
    }

    /** Marks a span and says what it is, beside a point. */
    show(span, clientX, clientY) {
        const theme = pageTheme();
        const {top, height} = this.layout.band(this.spans.stripOf(span));
        const from = Math.max(this.view.left, this.view.px(this.spans.start[span]));
        const to = Math.min(this.view.right, this.view.px(this.spans.end[span]));
        const shape = {x: from - 1, y: PLOT_TOP + top - 1, width: Math.max(1, to - from) + 2, height: height + 2};
        this.marker.forEach((frame, i) => {
            frame.attr({invisible: false, shape});
            frame.setStyle({stroke: i === 0 ? theme.bg : theme.ink});
        });
        this.pointed = false;
        showTip(clientX, clientY, describeSpan(this.spans, span, this.colours));
    }

    unmark() {
        this.marker.forEach((frame) => frame.attr({invisible: true}));
        hideTip();
    }

    /** Goes to the next (1) or previous (-1) span of the critical path, bringing it into sight. */
    stepCritical(direction) {
        const path = this.spans.critical;
        if (path.length === 0) {
            return;
        }
        const next = this.step < 0 && direction < 0 ? path.length - 1 : this.step + direction;
        this.step = Math.max(0, Math.min(path.length - 1, next));
        const span = path[this.step];
        this.bringIntoSight(span);
        const point = this.rowPoint(span);
        this.show(span, point.x, point.y);
    }

    bringIntoSight(span) {
        const percent = (ns) => (100 * ns) / this.endNs;
        const start = percent(this.spans.start[span]);
        const end = percent(this.spans.end[span]);
        const [from, to] = this.zoom;
        const plotPx = this.view.plot.width;
        // Too short to see: show about twenty of its length.
        const width = ((end - start) / (to - from)) * plotPx < 8 ? Math.min(to - from, (end - start) * 20) : to - from;
        if (width < to - from || start < from || end > to) {
            this.zoomTo((start + end - width) / 2, (start + end + width) / 2);
        }
        const {y} = this.rowPoint(span);
        if (y < 40 || y > window.innerHeight - 40) {
            window.scrollBy(0, y - window.innerHeight / 2);
        }
    }

    // Input

    listen() {
        let last = null;
        this.host.addEventListener('mousemove', (event) => {
            // Browsers also tell of a mouse at rest when the picture changes below it, as keys make it do.
            const place = `${event.screenX} ${event.screenY}`;
            if (place === last) {
                return;
            }
            last = place;
            const span = event.buttons === 0 ? this.spanAt(event.clientX, event.clientY) : null;
            if (span === null) {
                this.unmark();
            } else {
                this.show(span, event.clientX, event.clientY);
                this.pointed = true;
            }
        });
        // ECharts keeps every wheel over the plot to itself, also those it does nothing with: let the page scroll.
        this.host.addEventListener('wheel', (event) => {
            if (!event.ctrlKey) {
                event.stopPropagation();
            }
        }, {capture: true, passive: true});
        this.host.addEventListener('mouseleave', () => {
            // Not if a key brought the picture into sight and thereby away from the mouse.
            if (this.pointed) {
                this.unmark();
            }
        });
        this.host.addEventListener('blur', () => this.unmark());
        this.host.addEventListener('keydown', (event) => this.onKey(event));
    }

    onKey(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) {
            return;
        }
        const actions = {
            ArrowLeft: () => this.panBy(-0.15), ArrowRight: () => this.panBy(0.15),
            '+': () => this.zoomBy(0.6), '=': () => this.zoomBy(0.6), '-': () => this.zoomBy(1 / 0.6),
            0: () => this.zoomTo(0, 100), Escape: () => this.unmark(),
            n: () => this.stepCritical(1), p: () => this.stepCritical(-1),
        };
        if (actions[event.key]) {
            event.preventDefault();
            actions[event.key]();
        }
    }
}

function boxesItem(view, shape, style) {
    return {type: 'weftBoxes', shape: {boxes: [], lines: [], ...shape, plot: view.plot}, style};
}

function sliderLook(theme) {
    return {
        type: 'slider', top: 8, height: 20, showDataShadow: false, brushSelect: false, showDetail: true,
        borderColor: theme.rule, backgroundColor: 'transparent', fillerColor: theme.filler,
        handleStyle: {color: theme.bg, borderColor: theme.muted}, moveHandleSize: 0,
        textStyle: {color: theme.muted, fontSize: 11},
    };
}
