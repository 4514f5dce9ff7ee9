// What all pages share: elements, colours, the tooltip, the charts on the page, and the charts more than one page has.

// Elements. Data only ever becomes text or an attribute's value, never markup.

function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
        if (value !== null && value !== undefined) {
            made.setAttribute(name, value);
        }
    }
    made.append(...children.filter((child) => child !== null));
    return made;
}

function section(id, heading, ...children) {
    return element('section', {id, 'aria-labelledby': `${id}-heading`},
        element('h2', {id: `${id}-heading`}, heading), ...children);
}

function lead(text) {
    return text ? element('p', {class: 'lead'}, text) : null;
}

function chartHost(label, heightPx) {
    const host = element('div', {class: 'chart', role: 'img', 'aria-label': label});
    host.style.height = `${heightPx}px`;
    return host;
}

function swatch(colour, kind) {
    const mark = element('span', {class: `swatch ${kind || ''}`, 'aria-hidden': 'true'});
    mark.style.setProperty('--swatch', colour);
    return mark;
}

function colourKey(entries) {
    return element('ul', {class: 'key'},
        ...entries.map(({colour, kind, text}) => element('li', {}, swatch(colour, kind), text)));
}

/** A table whose columns are {head, number, cell(row)}; a cell is text or an element. */
function table(caption, columns, rows) {
    const alignment = (column) => (column.number ? {class: 'number'} : {});
    const head = columns.map((column) => element('th', {scope: 'col', ...alignment(column)}, column.head));
    const body = rows.map((row) => element('tr', {}, ...columns.map((column, i) => {
        const attributes = {...alignment(column), ...(column.attributes ? column.attributes(row) : {})};
        return i === 0 ? element('th', {scope: 'row', ...attributes}, column.cell(row))
            : element('td', attributes, column.cell(row));
    })));
    return element('table', {}, caption ? element('caption', {}, caption) : null,
        element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...body));
}

function scroller(label, content) {
    return element('div', {class: 'scroller', tabindex: '0', role: 'region', 'aria-label': label}, content);
}

// Colours

let themeNow = null;

/** The colours of page.css as they apply now (light, dark or paper). */
function pageTheme() {
    if (!themeNow) {
        const style = getComputedStyle(document.documentElement);
        const names = ['bg', 'ink', 'muted', 'rule', 'band', 'accent', 'compute', 'comm', 'pipelined', 'overhead',
            'start', 'done', 'heat-low', 'heat-high', 'loss', 'even', 'gain', 'font'];
        themeNow = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
        themeNow.dark = style.colorScheme.includes('dark');
        themeNow.filler = themeNow.dark ? 'rgba(111, 179, 245, 0.20)' : 'rgba(11, 98, 181, 0.10)';
    }
    return themeNow;
}

// Told apart by readers with any of the common kinds of colour blindness; the last is a grey.
const EIGHT_LIGHT = ['#0072b2', '#e69f00', '#009e73', '#d55e00', '#56b4e9', '#cc79a7', '#c9b800', '#6f7780'];
const EIGHT_DARK = ['#3d9be0', '#e8a820', '#1fb98c', '#e8703a', '#8ccdf5', '#d993bb', '#e3d84a', '#98a1aa'];

/** One colour for each of count sources: safe for colour-blind readers up to eight, evenly spaced hues beyond. */
function sourceColours(count, theme) {
    if (count <= 8) {
        return (theme.dark ? EIGHT_DARK : EIGHT_LIGHT).slice(0, count);
    }
    return Array.from({length: count}, (_, i) => {
        // Neighbours in number are neighbours in the picture too: lightness sets them apart.
        const lightness = (theme.dark ? 0.7 : 0.62) + (i % 2 === 0 ? 0.07 : -0.05);
        return colourOfHue((i / count) * 360 + 250, lightness, 0.125);
    });
}

/** sRGB of a colour in OKLCH, in which equal steps of hue and lightness look equal. */
function colourOfHue(hue, lightness, chroma) {
    const a = chroma * Math.cos((hue * Math.PI) / 180);
    const b = chroma * Math.sin((hue * Math.PI) / 180);
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
    const linear = [
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ];
    const channel = (value) => {
        const clipped = Math.min(1, Math.max(0, value));
        return Math.round(255 * (clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055));
    };
    return `rgb(${linear.map(channel).join(', ')})`;
}

/** Black or white, whichever reads better on a colour. */
function readableOn(colour) {
    const [red, green, blue] = echarts.color.parse(colour).map((value) => (value / 255) ** 2.2);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.2 ? '#14181d' : '#ffffff';
}

// The tooltip: one element of our own, since ECharts' own would read text as HTML.

function showTip(clientX, clientY, {title, rows, note, colour, hatched}) {
    const tip = document.getElementById('weft-tooltip');
    const mark = colour ? swatch(colour, hatched ? 'hatched' : '') : null;
    tip.replaceChildren(element('div', {class: 'tip-title'}, mark, title));
    if (rows && rows.length > 0) {
        tip.append(element('dl', {},
            ...rows.flatMap(([label, value]) => [element('dt', {}, label), element('dd', {}, value)])));
    }
    if (note) {
        tip.append(element('div', {class: 'tip-note'}, note));
    }
    tip.hidden = false;
    const {width, height} = tip.getBoundingClientRect();
    const left = clientX + 16 + width > window.innerWidth ? clientX - 16 - width : clientX + 16;
    const top = Math.min(clientY + 16, window.innerHeight - height - 8);
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
}

function hideTip() {
    document.getElementById('weft-tooltip').hidden = true;
}

/** Shows what describe(params) gives for the mark under the mouse. */
function tipOn(chart, describe) {
    chart.on('mousemove', (params) => {
        const what = describe(params);
        const mouse = params.event && params.event.event;
        if (what && mouse) {
            showTip(mouse.clientX, mouse.clientY, what);
        }
    });
    chart.on('mouseout', hideTip);
}

// The charts on the page

const PRINT_WIDTH_PX = 690;
const charts = new Map();
let printing = false;

const resizes = new ResizeObserver((entries) => {
    for (const {target} of entries) {
        const chart = echarts.getInstanceByDom(target);
        if (chart && !printing && target.clientWidth !== chart.getWidth()) {
            chart.resize();
            redrawChart(chart);
        }
    }
});

/** Draws a chart in a host that is on the page; makeOption is asked again whenever colours or sizes change. */
function addChart(host, makeOption) {
    const chart = echarts.init(host, null, {renderer: 'canvas'});
    charts.set(chart, makeOption);
    redrawChart(chart);
    resizes.observe(host);
    return chart;
}

function redrawChart(chart) {
    const option = charts.get(chart)();
    chart.setOption({animation: false, textStyle: {fontFamily: pageTheme().font}, ...option}, {notMerge: true});
}

function redrawCharts() {
    themeNow = null;
    for (const chart of charts.keys()) {
        redrawChart(chart);
    }
}

function dropChartsOffPage() {
    for (const chart of charts.keys()) {
        if (!chart.getDom().isConnected) {
            resizes.unobserve(chart.getDom());
            chart.dispose();
            charts.delete(chart);
        }
    }
}

/** Paper is white and narrower than most windows: charts are drawn anew for it, and back afterwards. */
function setPrinting(on) {
    if (on === printing) {
        return;
    }
    printing = on;
    document.documentElement.classList.toggle('printing', on);
    for (const chart of charts.keys()) {
        const host = chart.getDom();
        chart.resize({width: on ? Math.min(PRINT_WIDTH_PX, host.clientWidth) : 'auto'});
    }
    redrawCharts();
    charts.forEach((_, chart) => chart.getZr().flush());
}

// Axes

function valueAxis(theme, formatter, more) {
    return {
        type: 'value', min: 0, axisLine: {show: false}, axisTick: {show: false}, splitNumber: 5,
        splitLine: {lineStyle: {color: theme.rule}},
        axisLabel: {color: theme.muted, fontSize: 12, hideOverlap: true, formatter}, ...more,
    };
}

function nameAxis(theme, names, more, fontSize) {
    return {
        type: 'category', data: names, axisTick: {show: false}, axisLine: {lineStyle: {color: theme.rule}},
        axisLabel: {color: theme.ink, fontSize: fontSize || 12, interval: 0, hideOverlap: true},
        nameLocation: 'middle', nameTextStyle: {color: theme.muted, fontSize: 12}, ...more,
    };
}

/** The scale below a heat map. */
function heatScale(theme, low, high, format, colours) {
    return {
        type: 'continuous', min: low, max: high, dimension: 2, orient: 'horizontal', itemWidth: 12, itemHeight: 180,
        hoverLink: false, text: [format(high), format(low)], textStyle: {color: theme.muted, fontSize: 12},
        inRange: {color: colours},
    };
}

/** Shortens a name for an axis, which has no room for more. */
function shortName(name, length) {
    return name.length > length ? `${name.slice(0, length - 1)}…` : name;
}

// Where the time went

const hatches = new Map();

/** A fill hatched in a source's colour, for waits. */
function hatchPattern(colour, background) {
    const key = `${colour} on ${background}`;
    if (!hatches.has(key)) {
        hatches.set(key, drawHatch(colour, background));
    }
    return hatches.get(key);
}

function drawHatch(colour, background) {
    const size = 6;
    const canvas = document.createElement('canvas');
    canvas.width = size;
    canvas.height = size;
    const context = canvas.getContext('2d');
    context.fillStyle = background;
    context.fillRect(0, 0, size, size);
    context.globalAlpha = 0.22;
    context.fillStyle = colour;
    context.fillRect(0, 0, size, size);
    context.globalAlpha = 1;
    context.strokeStyle = colour;
    context.lineWidth = 1.3;
    context.beginPath();
    for (const shift of [-size, 0, size]) {
        context.moveTo(shift - 1, size + 1);
        context.lineTo(shift + size + 1, -1);
    }
    context.stroke();
    return {image: canvas, repeat: 'repeat'};
}

const OWN_WAITS = 8;

function idleColour(part, colours, theme) {
    if (part.kind === 'wait') {
        return {colour: colours.get(part.source) || theme.muted, hatched: true};
    }
    return {colour: part.kind === 'transfer' ? theme.comm : theme[part.kind] || theme.overhead, hatched: false};
}

/** The sources that were waited for longest: beyond them a bar would be too colourful to read. */
function longestAwaited(idle) {
    const waited = new Map();
    for (const part of idle.flatMap((rank) => rank.parts).filter((one) => one.kind === 'wait')) {
        waited.set(part.source, (waited.get(part.source) || 0) + part.ns);
    }
    const sorted = [...waited.keys()].sort((a, b) => waited.get(b) - waited.get(a));
    return new Set(sorted.length <= OWN_WAITS ? sorted : sorted.slice(0, OWN_WAITS - 1));
}

/** One bar series for each kind of part; waits: one for each of the longest awaited sources, and one for the rest. */
function idleSeries(idle, colours, theme) {
    const series = new Map();
    const own = longestAwaited(idle);
    idle.forEach((rank, i) => {
        for (const given of rank.parts.filter((one) => one.ns > 0)) {
            const rest = given.kind === 'wait' && !own.has(given.source);
            const part = rest
                ? {kind: 'wait', source: Infinity, name: 'waiting for rows of other ranks', ns: given.ns} : given;
            const key = part.kind === 'wait' ? `wait ${part.source}` : part.kind;
            if (!series.has(key)) {
                const data = new Array(idle.length).fill(null);
                series.set(key, {part, ...idleColour(part, colours, theme), data, names: []});
            }
            const one = series.get(key);
            one.data[i] = (one.data[i] || 0) + part.ns;
            one.names[i] = part.name;
        }
    });
    const place = ['start', 'transfer', 'compute', 'wait', 'overhead', 'done'];
    return [...series.values()].sort((a, b) => place.indexOf(a.part.kind) - place.indexOf(b.part.kind)
        || (a.part.source || 0) - (b.part.source || 0));
}

function sourceColourMap(run, theme) {
    const ranks = new Set(run.idle.map((rank) => rank.rank));
    run.idle.forEach((rank) => rank.parts.forEach((part) => part.kind === 'wait' && ranks.add(part.source)));
    if (run.timeline) {
        run.timeline.ranks.forEach((rank) => ranks.add(rank.rank));
    }
    const sources = [...ranks].sort((a, b) => a - b);
    const colours = sourceColours(sources.length, theme);
    return new Map(sources.map((source, i) => [source, colours[i]]));
}

function addIdleChart(parent, run) {
    const {idle} = run;
    const host = chartHost(`Where the time of each rank went. ${run.idleText || ''}`,
        52 + idle.length * (idle.length > 16 ? 13 : 30));
    const keyHost = element('div', {});
    parent.append(keyHost, host);
    const totals = idle.map((rank) => rank.parts.reduce((sum, part) => sum + part.ns, 0));
    const total = Math.max(...totals);
    let series = [];
    const chart = addChart(host, () => {
        const theme = pageTheme();
        series = idleSeries(idle, sourceColourMap(run, theme), theme);
        keyHost.replaceChildren(idleKey(series));
        return {
            grid: {left: 62, right: 14, top: 6, bottom: 30},
            xAxis: valueAxis(theme, (value) => (value === total ? '' : formatTick(value, total)), {max: total}),
            yAxis: nameAxis(theme, idle.map((rank) => `rank ${rank.rank}`),
                {inverse: true, axisLine: {show: false}}, idle.length > 16 ? 10 : 12),
            series: series.map(({colour, hatched, data}) => ({
                type: 'bar', stack: 'time', data, barWidth: idle.length > 16 ? 9 : 18, cursor: 'default',
                itemStyle: {color: hatched ? hatchPattern(colour, theme.bg) : colour}, emphasis: {disabled: true},
            })),
        };
    });
    tipOn(chart, ({value, dataIndex, seriesIndex}) => ({
        title: series[seriesIndex].names[dataIndex],
        rows: [['Rank', `${idle[dataIndex].rank}`], ['Time', formatNs(value)],
            ['Share', `${((100 * value) / totals[dataIndex]).toFixed(1)}%`]],
    }));
}

function idleKey(series) {
    return colourKey(series.map(({part, colour, hatched}) => (
        {colour, kind: hatched ? 'hatched' : '', text: part.name})));
}

// Samples

/** A spread of dots that is the same at every drawing: the golden ratio never repeats itself closely. */
function jitter(index, px) {
    return (((index * 0.6180339887) % 1) - 0.5) * px;
}

/** The samples of a view as dots in a row of the chart, offset pixels below its middle. */
function sampleDots(view, title, row, heightPx, offset) {
    const {samplesUs} = view;
    // One sample is the median itself.
    return samplesUs.length < 2 ? [] : samplesUs.map((value, i) => ({
        value: [value, row], symbolOffset: [0, offset + jitter(i, heightPx)],
        tip: {title, rows: [['View', view.label], ['Sample', `${i + 1} of ${samplesUs.length}`],
            ['Time', formatUs(value)]]},
    }));
}

/** The median of a view in words, right of its last dot. */
function medianText(view, row, offset, theme) {
    return {value: [Math.max(view.medianUs, ...view.samplesUs), row], symbolOffset: [0, offset],
        label: {show: true, position: 'right', distance: 6, formatter: () => formatUs(view.medianUs), color: theme.ink,
            // On a ground of its own, so that no line runs through it.
            fontSize: 13, fontWeight: 600, backgroundColor: theme.bg, padding: [2, 4]}};
}

function medianSeries(data) {
    return {type: 'scatter', data, symbolSize: 1, itemStyle: {color: 'transparent'}, silent: true, z: 6};
}

/** A dashed line across a chart at a value. */
function lineAt(value, theme, label) {
    return {
        silent: true, symbol: 'none', lineStyle: {color: theme.ink, type: [4, 4], width: 1}, data: [{xAxis: value}],
        label: {show: label !== '', formatter: label, color: theme.muted, fontSize: 12, position: 'start', distance: 4},
    };
}

function dotSeries(data, theme) {
    return {
        type: 'scatter', data, z: 5, symbolSize: data.length > 400 ? 3 : 5, cursor: 'default',
        itemStyle: {color: theme.bg, borderColor: theme.ink, borderWidth: 1, opacity: 0.75},
    };
}
