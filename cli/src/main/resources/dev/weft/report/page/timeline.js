// The timeline of every rank. ECharts has the axes, zoom, critical path and layers; the spans are one image in a custom
// series, written pixel by pixel: paths of a hundred thousand boxes took the browser about three times as long.

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

/** The chart of one call's timeline in a host element: drawing, zoom, hover and keys. */
class Timeline {
    /** kept: what state() of the timeline before this one gave, or null. */
    constructor(host, spans, kept, onColours) {
        this.host = host;
        this.onColours = () => onColours(this);
        this.spans = spans;
        this.layout = new TimelineLayout(spans);
        this.bitmap = new SpanBitmap();
        this.endNs = Math.max(1, spans.timeline.endNs);
        const {zoom = [0, 100], wantsCritical = true, step = -1, place = null} = kept || {};
        this.zoom = zoom;
        this.wantsCritical = wantsCritical;
        this.step = Math.min(step, spans.critical.length - 1);
        this.last = place && this.layout.spanNear(place);
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

    /** What the reader chose, for the timeline that takes this one's place. */
    state() {
        const {zoom, wantsCritical, step, last} = this;
        return {zoom, wantsCritical, step, place: last === null ? null : this.layout.placeOf(last)};
    }

    // Drawing

    option() {
        const theme = pageTheme();
        this.colours = sourceColours(this.spans.sources.length, theme);
        this.view = null;
        this.onColours();
        const path = this.wantsCritical && this.spans.critical.length > 0 ? 2 : 0;
        const range = {start: this.zoom[0], end: this.zoom[1], filterMode: 'none', throttle: 16,
            minSpan: Math.min(100, (2000 * this.spans.timeline.unitNs) / this.endNs)};
        return {
            animation: false,
            grid: {left: this.labelPx(), right: 30, top: PLOT_TOP, bottom: this.layout.bottomPx},
            xAxis: this.timeAxis(theme),
            yAxis: this.rankAxis(theme),
            dataZoom: [
                {...range, type: 'inside', zoomOnMouseWheel: 'ctrl', moveOnMouseMove: true, moveOnMouseWheel: false},
                {...range, ...sliderLook(theme), labelFormatter: (value) => formatTick(value, this.endNs / 10)},
            ],
            series: [
                this.series('bands', 1, 1, (view) => this.bandItem(view, theme)),
                this.series('spans', 2, 1, ({plot}) => ({type: 'image', style: {image: this.bitmap.canvas, ...plot}})),
                this.series('critical', 3, path, (view, i) => this.criticalItem(view, i, theme)),
                {...this.series('calls', 4, Math.min(1, this.spans.calls.length), (view) => this.callsItem(view, theme)),
                    clip: false},
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

    /** Where each call of a program begins, and its name below. */
    callsItem(view, theme) {
        const lines = [];
        const names = [];
        const bottom = view.y + view.plot.height;
        for (const {name, startNs, endNs} of this.spans.calls) {
            const from = Math.max(view.left, view.px(startNs));
            const width = Math.min(view.right, view.px(endNs)) - from;
            if (width <= 0) {
                continue;
            }
            lines.push(from, view.y, from, bottom + CALL_NAMES_PX);
            if (width > 30) {
                names.push({type: 'text', style: {text: name, x: from + 4, y: bottom + 6, width: width - 6,
                    overflow: 'truncate', fill: theme.muted, fontSize: 11}});
            }
        }
        return {type: 'group', children: [
            boxesItem(view, {lines}, {stroke: theme.muted, lineWidth: 1, lineDash: [2, 3], fill: 'none'}), ...names]};
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
        this.wantsCritical = !this.wantsCritical;
        redrawChart(this.chart);
        return this.wantsCritical;
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
        this.last = span;
        showTip(this.host, clientX, clientY, describeSpan(this.spans, span, this.colours));
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
        this.goTo(path[this.step]);
    }

    /** Goes to the span that move(last shown span) gives; to the first of all if none was shown yet. */
    stepFrom(move) {
        const span = this.last === null ? this.layout.firstSpan() : move(this.last);
        if (span !== null) {
            this.goTo(span);
        }
    }

    goTo(span) {
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
        // Too short to see: show about twenty of its length, if it has any.
        const short = end > start && ((end - start) / (to - from)) * plotPx < 8;
        const width = short ? Math.min(to - from, (end - start) * 20) : to - from;
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
            '.': () => this.stepFrom((span) => this.layout.besides(span, 1)),
            ',': () => this.stepFrom((span) => this.layout.besides(span, -1)),
            ...(event.shiftKey && {
                ArrowDown: () => this.stepFrom((span) => this.layout.beyond(span, 1)),
                ArrowUp: () => this.stepFrom((span) => this.layout.beyond(span, -1)),
            }),
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
