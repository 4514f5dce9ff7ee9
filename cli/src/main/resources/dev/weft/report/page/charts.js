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

const openTables = new Set();

/** What a chart shows, for those who cannot see it; stays open when a live page draws it anew. */
function asTable(id, content) {
    const made = element('details', {class: 'as-table', id: `${id}-table`},
        element('summary', {id: `${id}-table-summary`}, 'as a table'), content);
    made.open = openTables.has(id);
    made.addEventListener('toggle', () => (made.open ? openTables.add(id) : openTables.delete(id)));
    return made;
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

let tipHost = null;

/** Shows a tooltip for something in a host element. */
function showTip(host, clientX, clientY, {title, rows, note, colour, hatched}) {
    tipHost = host;
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

function hideTipOf(box) {
    if (tipHost && box.contains(tipHost)) {
        hideTip();
    }
}

/** Shows what describe(params) gives for the mark under the mouse. */
function tipOn(chart, describe) {
    chart.on('mousemove', (params) => {
        const what = describe(params);
        const mouse = params.event && params.event.event;
        if (what && mouse) {
            showTip(chart.getDom(), mouse.clientX, mouse.clientY, what);
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

// Samples

const MOST_DOTS = 2000;

/** Numbers of the calls of a view that are drawn as dots: all, or as many as can be told apart, evenly chosen. */
function drawnCalls({samplesUs}) {
    const count = samplesUs.length;
    const drawn = Math.min(count, MOST_DOTS);
    return Array.from({length: drawn}, (_, i) => Math.floor((i * count) / drawn));
}

/** Where dots are left out, a sentence that says so; else none. */
function drawnText(views) {
    const drawn = views.reduce((sum, view) => sum + drawnCalls(view).length, 0);
    const all = views.reduce((sum, view) => sum + view.samplesUs.length, 0);
    return drawn < all ? ` ${formatCount(drawn)} of ${formatCount(all)} calls are drawn.` : '';
}

/** The longest time that is drawn of a view. */
function longestUs(view) {
    return largestOf([view.medianUs, ...drawnCalls(view).map((i) => view.samplesUs[i])]);
}

/** A spread of dots that is the same at every drawing: the golden ratio never repeats itself closely. */
function jitter(index, px) {
    return (((index * 0.6180339887) % 1) - 0.5) * px;
}

/** The samples of a view as dots in a row of the chart, offset pixels below its middle. */
function sampleDots(view, title, row, heightPx, offset) {
    const {samplesUs} = view;
    // One sample is the median itself.
    return samplesUs.length < 2 ? [] : drawnCalls(view).map((i, place) => ({
        value: [samplesUs[i], row], symbolOffset: [0, offset + jitter(place, heightPx)],
        tip: {title, rows: [['View', view.label],
            ['Sample', `${formatCount(i + 1)} of ${formatCount(samplesUs.length)}`], ['Time', formatUs(samplesUs[i])]]},
    }));
}

/** Words right of a value in a row of the chart, offset pixels below its middle. */
function wordsAt(value, row, offset, words, theme) {
    return {value: [value, row], symbolOffset: [0, offset],
        label: {show: true, position: 'right', distance: 6, formatter: () => words, color: theme.ink,
            // On a ground of its own, so that no line runs through it.
            fontSize: 13, fontWeight: 600, backgroundColor: theme.bg, padding: [2, 4]}};
}

/** Above all bars, dots and lines. */
function wordsSeries(data) {
    return {type: 'scatter', data, symbolSize: 1, itemStyle: {color: 'transparent', opacity: 1}, silent: true, z: 6};
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
