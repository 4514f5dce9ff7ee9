// Where the time went: bars and a table of what each rank did with the length of the call.

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
    const totals = idle.map((rank) => rank.parts.reduce((sum, part) => sum + part.ns, 0));
    const total = largestOf(totals);
    parent.append(keyHost, host, asTable(parent.id, idleTable(run, totals)));
    let series = [];
    const chart = addChart(host, () => {
        const theme = pageTheme();
        series = idleSeries(idle, sourceColourMap(run, theme), theme);
        keyHost.replaceChildren(idleKey(series));
        return {
            grid: {left: 62, right: 30, top: 6, bottom: 30},
            xAxis: valueAxis(theme, (value) => (value === total ? '' : formatTick(value, total)), {max: total}),
            yAxis: nameAxis(theme, idle.map((rank) => `rank ${rank.rank}`),
                {inverse: true, axisLine: {show: false}}, idle.length > 16 ? 10 : 12),
            series: series.map(({colour, hatched, data}) => ({
                type: 'bar', stack: 'time', data, barWidth: idle.length > 16 ? 9 : 18, cursor: 'default',
                itemStyle: {color: hatched ? hatchPattern(colour, theme) : colour}, emphasis: {disabled: true},
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

/** One row for each rank, one column for each colour of the bars. */
function idleTable(run, totals) {
    const {idle} = run;
    const theme = pageTheme();
    const series = idleSeries(idle, sourceColourMap(run, theme), theme);
    const cell = (ns, total) => (ns === null ? '' : `${formatNs(ns)} (${((100 * ns) / total).toFixed(1)}%)`);
    return scroller('Table of where the time went', table(null, [
        {head: 'Rank', cell: (i) => `${idle[i].rank}`},
        ...series.map(({part, data}) => ({head: part.name, number: true, cell: (i) => cell(data[i], totals[i])})),
    ], idle.map((_, i) => i)));
}
