// The page of one run.

function showHeader(data, run) {
    const header = document.getElementById('header');
    const ofRun = run && run.simulated ? 'simulated run' : run && callsOf(run).length > 0 ? 'calls' : 'run report';
    const kind = {run: ofRun, compare: 'comparison', sweep: 'sweep'}[data.kind];
    header.replaceChildren(
        element('p', {class: 'brand'}, element('b', {}, 'Weft'), ` ${kind}`),
        element('h1', {}, data.title));
    if (data.comparison) {
        header.append(conclusion(data.comparison.sentence), ...data.comparison.warnings.map((text) =>
            element('p', {class: 'warning', 'data-warning': ''}, text)));
    }
    if (run) {
        header.append(element('p', {class: 'subtitle'}, run.subtitle), conclusion(run.conclusion),
            run.verdict ? verdict(run.verdict) : '', facts(run.facts));
    }
}

const VERDICT_WORDS = {passed: '✓ Passed', failed: '✗ Failed', predicted: 'Predicted', running: 'Running'};

function verdictBadge({state}) {
    return element('span', {class: `badge ${state}`, 'data-verdict': state}, VERDICT_WORDS[state] || state);
}

function verdict(given) {
    return element('div', {class: 'verdict'}, verdictBadge(given), element('span', {}, given.text));
}

function conclusion(text) {
    return text ? element('p', {class: 'conclusion', 'data-conclusion': ''}, text) : '';
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
        run.timeline && {id: 'timeline', shows: [run.timeline, run.idleText], prepare: () => readSpans(run.timeline),
            add: (parent, prepared) => addTimeline(parent, run, prepared)},
        full(callsOf(run)) && {id: 'calls', shows: callsOf(run), add: (parent) => addCalls(parent, callsOf(run))},
        full(run.idle) && {id: 'idle', shows: [run.idle, run.idleText], add: (parent) => addIdle(parent, run)},
        full(run.views) && {id: 'views', shows: run.views, add: (parent) => addViews(parent, run)},
        run.links && full(run.links.links)
            && {id: 'links', shows: run.links, add: (parent) => addLinks(parent, run.links)},
        full(run.advice) && {id: 'advice', shows: run.advice, add: (parent) => addAdvice(parent, run.advice)},
        full(run.details) && {id: 'details', shows: run.details, add: (parent) => addDetails(parent, run.details)},
    ].filter(Boolean);
}

// The timeline

const MOUSE_HINT = 'Ctrl and wheel zooms, dragging pans.';

function keyHint(spans) {
    const path = spans.critical.length > 0 ? ', n and p follow the critical path' : '';
    return `With the keyboard: arrows pan, + and − zoom, 0 shows all${path}; “,” and “.” go to the span before `
        + 'and after in a row, Shift with the up and down arrows to the row above and below.';
}

/** The timeline on the page, for window.weft; what the reader chose in it outlives the drawing of new data. */
const shown = {timeline: null};

async function readSpans(timeline) {
    try {
        return {spans: await Spans.read(timeline)};
    } catch (error) {
        return {error};
    }
}

function failure(text) {
    return element('p', {class: 'failed-text'}, text);
}

async function addTimeline(parent, run, {spans, error}) {
    const part = section('timeline', 'Timeline', lead(run.idleText));
    parent.append(part);
    if (error) {
        part.append(failure(`The timeline cannot be shown: ${error.message}`));
        return;
    }
    const host = element('div', {class: 'chart timeline tall', id: 'timeline-chart', tabindex: '0', role: 'application',
        'aria-label': `Timeline of ${run.timeline.ranks.length} ranks. ${keyHint(spans)}`});
    const keyHost = element('div', {});
    const tools = element('div', {class: 'tools'});
    part.append(tools, keyHost, host, element('p', {class: 'hint keys'}, keyHint(spans)));
    const kept = shown.timeline ? shown.timeline.state() : null;
    const timeline = new Timeline(host, spans, kept, (drawn) => keyHost.replaceChildren(timelineKey(drawn)));
    shown.timeline = timeline;
    tools.append(...timelineButtons(timeline), element('span', {class: 'hint'}, MOUSE_HINT));
    try {
        await spans.loadDetails();
    } catch (broken) {
        part.append(failure(`What its spans moved cannot be shown: ${broken.message}`));
    }
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
        critical.setAttribute('aria-pressed', timeline.wantsCritical);
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
    if (spans.hasEstimated) {
        entries.push({colour: 'currentColor', kind: 'pale', text: 'estimated times'});
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
    // A library's own gather, or a GPU's copies, are of all peers at once.
    const ofAll = kind === TRANSFER && spans.chunk && spans.to[span] < 0;
    if (ofAll) {
        rows.push(['Rows', "All peers' rows"]);
    } else if (source >= 0) {
        rows.push(['Source', `rank ${source}`]);
    }
    if (spans.chunk && !ofAll) {
        rows.push(...describeWork(spans, span, rank.rank));
    }
    // Starts of spans are whole units, rounded down.
    const after = spans.start[span] + spans.timeline.unitNs;
    const call = spans.calls.findLast(({startsNs}) => startsNs[strip.rank] < after);
    if (call) {
        rows.push(['Call', call.name]);
    }
    rows.push(['Duration', formatNs(ns)]);
    if (spans.chunk && kind === TRANSFER && !ofAll) {
        rows.push(['Speed', formatRate(spans.bytes[span], ns, 'B')]);
    }
    if (spans.chunk && kind === COMPUTE && spans.timeline.flopsPerRow) {
        rows.push(['Speed', formatRate(spans.rows[span] * spans.timeline.flopsPerRow, ns, 'FLOP')]);
    }
    const total = spans.timeline.endNs;
    rows.push(['Time', `${formatTick(spans.start[span], total / 100)} to ${formatTick(spans.end[span], total / 100)}`]);
    return {
        title: kind === WAIT ? 'Wait (idle)' : KIND_NAMES[kind], rows,
        colour: colours[spans.sourceIndex.get(source) || 0], hatched: kind === WAIT,
        note: [spans.isCritical[span] && 'on the critical path', spans.isEstimated[span] && 'times are estimated']
            .filter(Boolean).join(', ') || null,
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
        const peer = spans.peer[span];
        work.push(['Waits for', `rank ${peer === rank ? spans.source[span] : peer}`]);
    }
    return work;
}

// The calls of a program

function callsOf(run) {
    return (run.timeline && run.timeline.calls) || [];
}

function addCalls(parent, calls) {
    const total = largestOf(calls.map((call) => call.endNs));
    parent.append(section('calls', 'Calls', lead('From the first rank’s start to the last rank’s end.'), table(null, [
        {head: 'Call', cell: (call) => call.name},
        {head: 'Start', number: true, cell: (call) => formatTick(call.startNs, total / 100)},
        {head: 'Duration', number: true, cell: (call) => formatNs(call.endNs - call.startNs)},
    ], calls)));
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
            : 'Each dot is one call, each bar the median. Views took turns, so that a busy machine slows all alike.'
                + drawnText(run.views)),
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
    // The same columns for the parts of a view, which have no samples of their own.
    const partsOf = (view) => (view.parts || []).map(({label, medianUs}) =>
        ({label: `${view.label}: ${label}`, medianUs, isPart: true}));
    return table(null, [
        {head: 'View', cell: (view) => view.label},
        {head: 'Median', number: true, cell: (view) => time(view.medianUs),
            attributes: (view) => (view.isPart ? {} : {'data-view': view.key, 'data-value': view.medianUs})},
        {head: 'Mean', number: true, cell: (view) => (view.isPart ? '' : time(meanOf(view.samplesUs)))},
        {head: 'Spread', number: true,
            cell: (view) => (view.isPart || view.samplesUs.length < 2 ? '' : time(view.spreadUs))},
        {head: 'Samples', number: true, cell: (view) => (view.isPart ? '' : formatCount(view.samplesUs.length))},
    ], views.flatMap((view) => [view, ...partsOf(view)]));
}

function viewColour(key, theme) {
    return {computeOnly: theme.compute, commOnly: theme.comm, pipelined: theme.pipelined}[key] || theme.muted;
}

function viewsOption(views, width) {
    const theme = pageTheme();
    const largest = largestOf(views.map(longestUs));
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
