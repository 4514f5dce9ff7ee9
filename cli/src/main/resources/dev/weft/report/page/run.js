// The page of one run.

function showHeader(data, run) {
    const header = document.getElementById('header');
    const ofRun = run && run.simulated ? 'simulated run' : 'run report';
    const kind = {run: ofRun, compare: 'comparison', sweep: 'sweep'}[data.kind];
    header.replaceChildren(
        element('p', {class: 'brand'}, element('b', {}, 'Weft'), ` ${kind}`),
        element('h1', {}, data.title));
    if (run) {
        header.append(element('p', {class: 'subtitle'}, run.subtitle), verdict(run.verdict), facts(run.facts));
    }
}

const VERDICT_WORDS = {passed: '✓ Passed', failed: '✗ Failed', predicted: 'Predicted', running: 'Running'};

function verdictBadge({state}) {
    return element('span', {class: `badge ${state}`, 'data-verdict': state}, VERDICT_WORDS[state] || state);
}

function verdict(given) {
    return element('div', {class: 'verdict'}, verdictBadge(given), element('span', {}, given.text));
}

function facts(list) {
    return list.length === 0 ? '' : element('dl', {class: 'facts'}, ...list.map((fact) => element('div', {},
        element('dt', {}, fact.label),
        element('dd', {'data-fact': fact.key, 'data-value': fact.value === null ? '' : fact.value,
            class: fact.value === null ? 'unknown' : null}, fact.text),
        fact.note ? element('dd', {class: 'note'}, fact.note) : null)));
}

/** The sections of a run, each with the data it shows, so that a live page draws anew only what changed. */
function runSections(data) {
    const run = data.runs[0];
    if (!run) {
        return [];
    }
    const full = (list) => list && list.length > 0;
    return [
        run.timeline && {id: 'timeline', shows: run.timeline, add: (parent) => addTimeline(parent, run)},
        full(run.idle) && {id: 'idle', shows: run.idle, add: (parent) => addIdle(parent, run)},
        full(run.views) && {id: 'views', shows: run.views, add: (parent) => addViews(parent, run)},
        run.links && full(run.links.cells)
            && {id: 'links', shows: run.links, add: (parent) => addLinks(parent, run.links)},
        full(run.advice) && {id: 'advice', shows: run.advice, add: (parent) => addAdvice(parent, run.advice)},
        full(run.details) && {id: 'details', shows: run.details, add: (parent) => addDetails(parent, run.details)},
    ].filter(Boolean);
}

// The timeline

const TIMELINE_HINT = 'Ctrl and wheel zooms, dragging pans. '
    + 'With the keyboard: arrows, + and −, 0 for all, n and p along the critical path.';

/** The timeline on the page, for window.weft; zoom outlives the drawing of new data. */
const shown = {timeline: null, zoom: null};

async function addTimeline(parent, run) {
    const part = section('timeline', 'Timeline', lead(run.idleText));
    parent.append(part);
    let spans;
    try {
        spans = await Spans.read(run.timeline);
    } catch (error) {
        part.append(element('p', {class: 'failed-text'}, `The timeline cannot be shown: ${error.message}`));
        return;
    }
    const host = element('div', {class: 'chart timeline tall', id: 'timeline-chart', tabindex: '0', role: 'application',
        'aria-label': `Timeline of ${run.timeline.ranks.length} ranks. ${TIMELINE_HINT}`});
    const keyHost = element('div', {});
    const tools = element('div', {class: 'tools'});
    part.append(tools, keyHost, host);
    const timeline = new Timeline(host, spans, shown.zoom, (drawn) => keyHost.replaceChildren(timelineKey(drawn)));
    shown.timeline = timeline;
    tools.append(...timelineButtons(timeline), element('span', {class: 'hint'}, TIMELINE_HINT));
    await spans.loadDetails();
}

function timelineButtons(timeline) {
    const button = (text, act) => {
        const made = element('button', {type: 'button', id: `timeline-${text.toLowerCase().replace(' ', '-')}`}, text);
        made.addEventListener('click', () => act(made));
        return made;
    };
    const buttons = [
        button('Zoom in', () => timeline.zoomBy(0.5)),
        button('Zoom out', () => timeline.zoomBy(2)),
        button('All', () => timeline.zoomTo(0, 100)),
    ];
    if (timeline.spans.critical.length > 0) {
        const critical = button('Critical path',
            (made) => made.setAttribute('aria-pressed', timeline.toggleCritical()));
        critical.setAttribute('aria-pressed', 'true');
        buttons.push(critical);
    }
    return buttons;
}

function timelineKey(timeline) {
    const {spans, colours} = timeline;
    const rows = timeline.layout.rows.map((row) => ROW_NAMES[row]).join(', ');
    const entries = [];
    if (spans.sources.length <= 16) {
        spans.sources.forEach((source, i) => entries.push({colour: colours[i], text: `rows of rank ${source}`}));
    } else {
        const [first, last] = [spans.sources[0], spans.sources[spans.sources.length - 1]];
        entries.push({colour: `linear-gradient(90deg, ${colours.join(', ')})`, kind: 'ramp',
            text: `rows of rank ${first} to ${last}`});
    }
    if (timeline.layout.rows.includes(1)) {
        entries.push({colour: 'currentColor', kind: 'hatched', text: 'waiting for them'});
    }
    if (spans.critical.length > 0) {
        entries.push({kind: 'outlined', text: 'critical path'});
    }
    const key = colourKey(entries);
    if (timeline.labelPx() < 100) {
        key.append(element('li', {}, `each rank from top to bottom: ${rows}`));
    }
    return key;
}

/** What the tooltip says of a span. */
function describeSpan(spans, span, colours) {
    const strip = spans.stripOf(span);
    const rank = spans.timeline.ranks[strip.rank];
    const source = spans.source[span];
    const kind = spans.kind[span];
    const ns = spans.end[span] - spans.start[span];
    const grouped = spans.timeline.ranks.some((other) => other.group !== rank.group);
    const rows = [['Rank', grouped ? `${rank.rank}, group ${rank.group}` : `${rank.rank}`], ['Track', strip.track]];
    if (source >= 0) {
        rows.push(['Source', `rank ${source}`]);
    }
    if (spans.chunk) {
        rows.push(...describeWork(spans, span, rank.rank));
    }
    rows.push(['Duration', formatNs(ns)]);
    if (spans.chunk && kind === TRANSFER) {
        rows.push(['Speed', formatRate(spans.bytes[span], ns, 'GB/s')]);
    }
    if (spans.chunk && kind === COMPUTE && spans.timeline.flopsPerRow) {
        rows.push(['Speed', formatRate(spans.rows[span] * spans.timeline.flopsPerRow, ns, 'GFLOP/s')]);
    }
    const total = spans.timeline.endNs;
    rows.push(['Time', `${formatTick(spans.start[span], total / 100)} to ${formatTick(spans.end[span], total / 100)}`]);
    return {
        title: kind === WAIT ? 'Wait (idle)' : KIND_NAMES[kind], rows,
        colour: colours[spans.sourceIndex.get(source) || 0], hatched: kind === WAIT,
        note: spans.isCritical[span] ? 'on the critical path' : null,
    };
}

function describeWork(spans, span, rank) {
    const work = [];
    if (spans.chunk[span] >= 0) {
        work.push(['Chunk', `${spans.chunk[span]}`]);
    }
    if (spans.rows[span] > 0) {
        const [first, rows] = [spans.firstRow[span], spans.rows[span]];
        work.push(['Rows', `${formatCount(first)} to ${formatCount(first + rows - 1)} (${formatCount(rows)})`]);
    }
    if (spans.kind[span] === TRANSFER) {
        const to = spans.to[span];
        const from = to === rank ? spans.peer[span] : rank;
        work.push(['Bytes', `${formatCount(spans.bytes[span])} (${formatBytes(spans.bytes[span])})`]);
        work.push(['Link', `rank ${from} → rank ${to}`]);
    }
    if (spans.kind[span] === WAIT) {
        work.push(['Waits for', `rank ${spans.peer[span]}`]);
    }
    return work;
}

// Where the time went

function addIdle(parent, run) {
    const part = section('idle', 'Where the time went',
        lead(run.timeline ? 'The call of every rank, from the first start to the last end.' : run.idleText));
    parent.append(part);
    addIdleChart(part, run);
}

// Views side by side

function addViews(parent, run) {
    const box = element('div', {class: 'split'});
    parent.append(section('views', 'Views side by side',
        lead(run.simulated ? 'Predicted times of one call each way.'
            : 'Each dot is one call, each bar the median. Views took turns, so that a busy machine slows all alike.'),
        box));
    const host = chartHost('Times of the views as bars with every sample as a dot; the table has the numbers.',
        54 + run.views.length * 56);
    box.append(host, element('div', {}, viewsTable(run.views)));
    const chart = addChart(host, () => viewsOption(run.views, host.clientWidth));
    tipOn(chart, ({data, dataIndex, seriesType}) => seriesType === 'scatter' ? data.tip : data && {
        title: data.name || run.views[dataIndex].label, rows: [['Median', formatUs(data.value)]]});
}

function viewsTable(views) {
    const time = (us) => (us === null || us === undefined ? '' : formatUs(us));
    return table(null, [
        {head: 'View', cell: (view) => view.label},
        {head: 'Median', number: true, cell: (view) => time(view.medianUs),
            attributes: (view) => ({'data-view': view.key, 'data-value': view.medianUs})},
        {head: 'Spread', number: true, cell: (view) => (view.samplesUs.length < 2 ? '' : time(view.spreadUs))},
        {head: 'Samples', number: true, cell: (view) => formatCount(view.samplesUs.length)},
    ], views);
}

function viewColour(key, theme) {
    return {computeOnly: theme.compute, commOnly: theme.comm, pipelined: theme.pipelined}[key] || theme.muted;
}

function viewsOption(views, width) {
    const theme = pageTheme();
    const largest = Math.max(...views.flatMap((view) => [view.medianUs, ...view.samplesUs]));
    const partColours = [theme.comm, theme.compute, theme.muted];
    const parts = Math.max(0, ...views.map((view) => (view.parts || []).length));
    const bar = (data) => ({type: 'bar', stack: 'view', barWidth: 26, data, cursor: 'default'});
    const whole = bar(views.map((view) => (view.parts && view.parts.length ? null
        : {value: view.medianUs, itemStyle: {color: viewColour(view.key, theme)}})));
    const stacked = Array.from({length: parts}, (_, i) => bar(views.map((view) => {
        const one = (view.parts || [])[i];
        const colour = partColours[i % partColours.length];
        return one ? {value: one.medianUs, name: `${view.label}: ${one.label}`, itemStyle: {color: colour},
            label: {show: one.medianUs > largest / 6, formatter: () => one.label, fontSize: 12,
                color: readableOn(colour)}} : null;
    })));
    // No call can be faster than the slower of compute and transfers alone.
    const alone = views.filter((view) => ['computeOnly', 'commOnly'].includes(view.key));
    const limit = alone.length < 2 ? undefined
        : lineAt(Math.max(...alone.map((view) => view.medianUs)), theme, 'limit');
    return {
        grid: {left: width < 500 ? 92 : 108, right: 78, top: 22, bottom: 30},
        xAxis: valueAxis(theme, (value) => formatTick(value * 1000, largest * 1000)),
        yAxis: [
            nameAxis(theme, views.map((view) => view.label), {inverse: true}, 13),
            {...nameAxis(theme, views.map((view) => formatUs(view.medianUs)), {inverse: true, position: 'right'}, 13),
                axisLine: {show: false}},
        ],
        series: [
            {...whole, markLine: limit}, ...stacked,
            dotSeries(views.flatMap((view, row) => sampleDots(view, view.label, row, 20, 0)), theme),
        ],
    };
}

// The gather as it happened

function addLinks(parent, links) {
    const total = links.cells.reduce((sum, cell) => sum + cell.bytes, 0);
    const transfers = links.cells.reduce((sum, cell) => sum + cell.transfers, 0);
    const few = links.ranks <= 16;
    const cellPx = Math.max(11, Math.min(52, 440 / links.ranks));
    const sidePx = Math.round(cellPx * links.ranks);
    const host = chartHost('Bytes from each rank to each other rank', sidePx + 92);
    const box = element('div', few ? {class: 'split'} : {}, host, few ? element('div', {}, linksTable(links)) : null);
    parent.append(section('links', 'The gather as it happened',
        lead(`${formatBytes(total)} went over ${formatCount(links.cells.length)} links `
            + `in ${formatCount(transfers)} transfers.`), box));
    const chart = addChart(host, () => linksOption(links, host.clientWidth, sidePx));
    tipOn(chart, ({dataIndex}) => {
        const cell = links.cells[dataIndex];
        return cell && {
            title: `rank ${cell.from} → rank ${cell.to}`,
            rows: [['Bytes', `${formatCount(cell.bytes)} (${formatBytes(cell.bytes)})`],
                ['Transfers', formatCount(cell.transfers)], ['Speed', formatRate(cell.bytes, cell.busyNs, 'GB/s')]],
        };
    });
}

function linksTable(links) {
    const ranks = [...new Set(links.cells.flatMap((cell) => [cell.from, cell.to]))].sort((a, b) => a - b);
    const sum = (cells, field) => cells.reduce((total, cell) => total + cell[field], 0);
    const sent = (rank) => links.cells.filter((cell) => cell.from === rank);
    const received = (rank) => links.cells.filter((cell) => cell.to === rank);
    return table(null, [
        {head: 'Rank', cell: (rank) => `${rank}`},
        {head: 'Sent', number: true, cell: (rank) => formatBytes(sum(sent(rank), 'bytes'))},
        {head: 'Received', number: true, cell: (rank) => formatBytes(sum(received(rank), 'bytes'))},
        {head: 'While receiving', number: true, cell: (rank) => (received(rank).length === 0 ? ''
            : formatRate(sum(received(rank), 'bytes'), sum(received(rank), 'busyNs'), 'GB/s'))},
    ], ranks);
}

function linksOption(links, width, sidePx) {
    const theme = pageTheme();
    const names = Array.from({length: links.ranks}, (_, i) => `${i}`);
    const largest = Math.max(...links.cells.map((cell) => cell.bytes));
    const plotPx = Math.min(sidePx * (links.ranks <= 8 ? 2.2 : 1.25), width - 80);
    const fine = sidePx / links.ranks < 18;
    const labelled = plotPx / links.ranks >= 64;
    const axis = (name, more) => nameAxis(theme, names, {name, axisLine: {show: false}, ...more}, fine ? 9.5 : 12);
    return {
        grid: {left: 62, top: 46, width: plotPx, height: sidePx},
        xAxis: axis('to rank', {position: 'top', nameGap: 26}),
        yAxis: axis('from rank', {inverse: true, nameGap: 36}),
        visualMap: {...heatScale(theme, 0, largest, formatBytes, [theme['heat-low'], theme['heat-high']]),
            left: 58, top: sidePx + 56},
        series: [{
            type: 'heatmap', progressive: 0, data: links.cells.map((cell) => linkItem(cell, labelled, largest, theme)),
            itemStyle: {borderColor: theme.bg, borderWidth: fine ? 0.5 : 2},
            label: {show: labelled, fontSize: 12,
                formatter: ({dataIndex}) => formatBytes(links.cells[dataIndex].bytes)},
            emphasis: {disabled: true},
        }],
    };
}

/** Plain numbers where there are no labels: at 64 ranks that halves the time it takes to draw. */
function linkItem(cell, labelled, largest, theme) {
    const value = [cell.to, cell.from, cell.bytes];
    const colour = echarts.color.lerp(cell.bytes / largest, [theme['heat-low'], theme['heat-high']]);
    return labelled ? {value, label: {color: readableOn(colour)}} : value;
}

// What to try next, and details

function addAdvice(parent, advice) {
    const items = advice.map(({title, reason}) =>
        element('li', {}, element('h3', {}, title), element('p', {}, reason)));
    const part = section('advice', 'What to try next', element('ul', {class: 'advice'}, ...items));
    part.classList.add('short');
    parent.append(part);
}

function addDetails(parent, details) {
    const part = section('details', 'Details', element('dl', {class: 'details'}, ...details.map(({label, value}) =>
        element('div', {}, element('dt', {}, label), element('dd', {}, value)))));
    part.classList.add('short');
    parent.append(part);
}
