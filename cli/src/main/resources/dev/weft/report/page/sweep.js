// The page of a sweep: curves, a heat map of where overlap pays, and the best rows.

const SWEPT = {ranks: 'ranks', m: 'M', k: 'K', n: 'N', splits: 'splits'};
const FASTEST = 'fastest';
const SYMBOLS = ['circle', 'rect', 'triangle', 'diamond', 'roundRect', 'pin', 'arrow'];

/** What the reader chose; kept while a live page draws anew. */
const sweepChoice = {curves: {}, heat: {}};

function sweepSections(data) {
    const rows = (data.sweep && data.sweep.rows) || [];
    const possible = rows.filter((row) => !row.reason);
    const sweep = {
        ...data.sweep, rows, possible,
        algorithms: [...new Set(rows.map((row) => row.algorithm))],
        varying: Object.keys(SWEPT).filter((name) => sweptValues(rows, name).length > 1),
    };
    if (rows.length === 0) {
        return [];
    }
    const overlapped = possible.some((row) => row.algorithm !== 'sequential' && Number.isFinite(row.speedup));
    return [
        {id: 'about', shows: [data.sweep.machine, rows.length], add: (parent) => addSweepAbout(parent, sweep)},
        sweep.varying.length > 0 && possible.length > 0
            && {id: 'curves', shows: rows, add: (parent) => addCurves(parent, sweep)},
        sweep.varying.length > 0 && overlapped && {id: 'heat', shows: rows, add: (parent) => addHeat(parent, sweep)},
        possible.some((row) => row.best) && {id: 'best', shows: rows, add: (parent) => addBest(parent, sweep)},
        rows.length > possible.length && {id: 'refused', shows: rows, add: (parent) => addRefused(parent, rows)},
    ].filter(Boolean);
}

function sweptValues(rows, name) {
    const values = [...new Set(rows.map((row) => row[name]))];
    return values.sort((a, b) => (a === null ? -1 : b === null ? 1 : typeof a === 'number' ? a - b : 0));
}

function valueName(name, value) {
    if (name === 'splits' && value === null) {
        return "the machine's own";
    }
    return typeof value === 'number' ? formatCount(value) : `${value}`;
}

function addSweepAbout(parent, sweep) {
    const best = sweep.possible.filter((row) => row.best);
    const won = best.filter((row) => row.algorithm !== 'sequential').length;
    const top = best.reduce((a, b) => ((b.speedup || 0) > ((a && a.speedup) || 0) ? b : a), null);
    const text = [`${formatCount(sweep.rows.length)} combinations, predicted on ${sweep.machine}: `
        + `A in ${sweep.aDtype}, C in ${sweep.outDtype}, B ${sweep.rhs}.`];
    if (best.length > 0) {
        text.push(`Overlap is fastest in ${formatCount(won)} of ${formatCount(best.length)} problems.`);
    }
    if (top && top.speedup > 1) {
        text.push(`It pays most, ${top.speedup.toFixed(2)}x, `
            + `with ${top.algorithm} at ${problemName(top)} on ${top.ranks} ranks.`);
    }
    parent.append(element('p', {class: 'lead'}, text.join(' ')));
}

function problemName(row) {
    return `[${row.m} x ${row.k}] x [${row.k} x ${row.n}]`;
}

// Controls

function chooser(id, label, options, value, onChange) {
    const select = element('select', {id}, ...options.map(([key, text]) => element('option', {value: key}, text)));
    select.value = value;
    select.addEventListener('change', () => onChange(select.value));
    return element('label', {for: id}, label, select);
}

/** Values of the dimensions that are not on an axis: ranks and splits may also be the fastest. */
function heldOptions(sweep, name) {
    const values = sweptValues(sweep.rows, name).map((value) => [`${value}`, valueName(name, value)]);
    return name === 'ranks' || name === 'splits' ? [[FASTEST, 'the fastest'], ...values] : values;
}

function heldChoosers(prefix, sweep, choice, onAxes, redraw) {
    return sweep.varying.filter((name) => !onAxes.includes(name)).map((name) => {
        const options = heldOptions(sweep, name);
        if (!options.some(([key]) => key === choice[name])) {
            choice[name] = name === 'ranks' || name === 'splits' ? FASTEST : options[options.length - 1][0];
        }
        return chooser(`${prefix}-${name}`, `${SWEPT[name]} `, options, choice[name], (value) => {
            choice[name] = value;
            redraw();
        });
    });
}

function isHeld(sweep, choice, onAxes, row) {
    return sweep.varying.every((name) =>
        onAxes.includes(name) || choice[name] === FASTEST || `${row[name]}` === choice[name]);
}

/** A box of controls and a chart below, built again when an axis changes since other values are then held. */
function withControls(part, build) {
    const tools = element('div', {class: 'tools'});
    part.append(tools);
    const rebuild = () => {
        const focused = document.activeElement && document.activeElement.id;
        tools.replaceChildren(...build(rebuild));
        const again = focused && document.getElementById(focused);
        if (again && tools.contains(again)) {
            again.focus();
        }
        redrawPart(part);
    };
    tools.replaceChildren(...build(rebuild));
}

function redrawPart(part) {
    for (const chart of charts.keys()) {
        if (part.contains(chart.getDom())) {
            redrawChart(chart);
        }
    }
}

// Curves

function addCurves(parent, sweep) {
    const choice = sweepChoice.curves;
    if (!sweep.varying.includes(choice.x)) {
        choice.x = sweep.varying[0];
    }
    const part = section('curves', 'How it scales');
    parent.append(part);
    withControls(part, (rebuild) => [
        chooser('curves-x', 'Across ', sweep.varying.map((name) => [name, SWEPT[name]]), choice.x, (value) => {
            choice.x = value;
            rebuild();
        }),
        ...heldChoosers('curves', sweep, choice, [choice.x], () => redrawPart(part)),
    ]);
    const box = element('div', {class: 'halves'});
    part.append(box);
    if (sweep.possible.some((row) => Number.isFinite(row.speedup))) {
        addCurve(box, sweep, 'Speedup over sequential', 'speedup', (value) => `${value.toFixed(2)}x`);
    }
    addCurve(box, sweep, 'Time of a call', 'predictedUs', formatUs);
}

function addCurve(box, sweep, title, field, format) {
    const host = chartHost(`${title}, one line for each algorithm`, 330);
    box.append(element('div', {}, element('h3', {}, title), host));
    const chart = addChart(host, () => curveOption(sweep, field, format));
    tipOn(chart, ({data, seriesName}) => data && data.row && {title: seriesName, rows: describeRow(data.row)});
}

function fastestRow(rows) {
    return rows.reduce((best, row) => (!best || row.predictedUs < best.predictedUs ? row : best), null);
}

function curveOption(sweep, field, format) {
    const theme = pageTheme();
    const {x} = sweepChoice.curves;
    const values = sweptValues(sweep.rows, x);
    const held = sweep.possible.filter((row) =>
        isHeld(sweep, sweepChoice.curves, [x], row) && Number.isFinite(row[field]));
    const all = held.map((row) => row[field]);
    const largest = largestOf(all);
    const wide = field === 'predictedUs' && all.some((value) => largest > 20 * value);
    const timeLabel = (value) => (wide ? formatUs(value) : formatTick(value * 1000, largest * 1000));
    const colours = algorithmColours(sweep.algorithms, theme);
    return {
        grid: {left: 64, right: 34, top: 58, bottom: 46},
        legend: {top: 4, left: 0, itemWidth: 22, itemHeight: 9, itemGap: 14, inactiveColor: theme.muted,
            textStyle: {color: theme.ink, fontSize: 12}},
        xAxis: nameAxis(theme, values.map((value) => valueName(x, value)), {name: SWEPT[x], nameGap: 28}),
        yAxis: valueAxis(theme, (value) => (field === 'speedup' ? `${value}x` : timeLabel(value)),
            wide ? {type: 'log', min: undefined} : {}),
        series: sweep.algorithms.map((algorithm, i) => ({
            type: 'line', name: algorithm, symbol: SYMBOLS[i % SYMBOLS.length], symbolSize: 8, cursor: 'default',
            itemStyle: {color: colours.get(algorithm)},
            lineStyle: {width: 2, type: algorithm === 'sequential' ? [5, 4] : 'solid'},
            data: values.map((value) => {
                const row = fastestRow(held.filter((one) => one[x] === value && one.algorithm === algorithm));
                return row ? {value: row[field], row} : {value: null};
            }),
        })),
    };
}

/** Sequential is what the others are measured against: grey, and they keep their colours with or without it. */
function algorithmColours(algorithms, theme) {
    const others = algorithms.filter((algorithm) => algorithm !== 'sequential');
    const colours = sourceColours(Math.max(1, others.length), theme);
    return new Map([['sequential', theme.muted], ...others.map((algorithm, i) => [algorithm, colours[i]])]);
}

function describeRow(row) {
    const lines = [['Problem', problemName(row)], ['Ranks', formatCount(row.ranks)], ['Algorithm', row.algorithm],
        ['Chunks', `${formatCount(row.chunks)} of ${formatCount(row.chunkRows)} rows`],
        ['Time', formatUs(row.predictedUs)]];
    if (Number.isFinite(row.speedup)) {
        lines.push(['Sequential', formatUs(row.sequentialUs)], ['Speedup', `${row.speedup.toFixed(2)}x`]);
    }
    lines.push(['Of the limit', `${(100 * row.limitFraction).toFixed(0)}%`]);
    return lines;
}

// The heat map

function addHeat(parent, sweep) {
    const choice = sweepChoice.heat;
    const axes = [...sweep.varying, 'algorithm'];
    const axisNames = {...SWEPT, algorithm: 'algorithm'};
    if (!axes.includes(choice.x)) {
        choice.x = axes[0];
    }
    if (!axes.includes(choice.y) || choice.y === choice.x) {
        choice.y = axes.find((name) => name !== choice.x);
    }
    const part = section('heat', 'Where overlap pays',
        lead('Speedup of the best overlapped call over the cheapest sequential one. '
            + 'Cells where sequential wins say so.'));
    parent.append(part);
    // The other axis takes over what this one had, so that no choice is refused.
    const pick = (axis, other, rebuild) => (value) => {
        if (choice[other] === value) {
            choice[other] = choice[axis];
        }
        choice[axis] = value;
        rebuild();
    };
    const options = axes.map((name) => [name, axisNames[name]]);
    withControls(part, (rebuild) => [
        chooser('heat-x', 'Across ', options, choice.x, pick('x', 'y', rebuild)),
        chooser('heat-y', 'Down ', options, choice.y, pick('y', 'x', rebuild)),
        ...heldChoosers('heat', sweep, choice, [choice.x, choice.y], () => redrawPart(part)),
    ]);
    const host = chartHost('Heat map of the speedup; the table below has the best rows', 300);
    host.id = 'heat-chart';
    part.append(host);
    const chart = addChart(host, () => heatOption(sweep, host, axisNames));
    tipOn(chart, ({data}) => data && data.row && {
        title: data.row.speedup > 1 ? 'Overlap pays' : 'Sequential wins', rows: describeRow(data.row)});
}

function heatCells(sweep, xs, ys) {
    const {x, y} = sweepChoice.heat;
    const cells = [];
    const rows = sweep.possible.filter((row) => row.algorithm !== 'sequential' && Number.isFinite(row.speedup)
        && isHeld(sweep, sweepChoice.heat, [x, y], row));
    xs.forEach((xValue, i) => ys.forEach((yValue, j) => {
        const here = rows.filter((row) => row[x] === xValue && row[y] === yValue);
        if (here.length > 0) {
            cells.push({i, j, row: here.reduce((a, b) => (b.speedup > a.speedup ? b : a))});
        }
    }));
    return cells;
}

function heatOption(sweep, host, axisNames) {
    const theme = pageTheme();
    const {x, y} = sweepChoice.heat;
    const shownRows = sweep.rows.filter((row) => row.algorithm !== 'sequential');
    const xs = sweptValues(shownRows, x);
    const ys = sweptValues(shownRows, y);
    const cells = heatCells(sweep, xs, ys);
    fitHeight(host, 100 + ys.length * 50);
    const low = Math.min(1, ...cells.map(({row}) => row.speedup));
    const high = Math.max(1.01, ...cells.map(({row}) => row.speedup));
    const reach = Math.max(0.05, high - 1, 1 - low);
    const axis = (name, values, more) => nameAxis(theme, values.map((value) => valueName(name, value)),
        {name: axisNames[name], axisLine: {show: false}, ...more});
    return {
        grid: {left: y === 'algorithm' ? 150 : y === 'splits' ? 130 : 84, right: 10, top: 10, bottom: 84},
        xAxis: axis(x, xs, {nameGap: 28}),
        yAxis: axis(y, ys, {inverse: true, nameGap: y === 'algorithm' ? 130 : y === 'splits' ? 112 : 62}),
        visualMap: {left: 'center', bottom: 0, ...heatScale(theme, low, high, (value) => `${value.toFixed(2)}x`,
            gainColours(low, high, reach, theme))},
        series: [{
            type: 'heatmap', progressive: 0, itemStyle: {borderColor: theme.bg, borderWidth: 2},
            data: cells.map(({i, j, row}) => ({value: [i, j, row.speedup], row,
                label: {color: readableOn(gainColour(row.speedup, reach, theme))}})),
            label: {show: true, fontSize: 12.5, lineHeight: 15, formatter: ({data}) =>
                `${data.row.speedup.toFixed(2)}x${data.row.speedup > 1 ? '' : '\nsequential'}`},
            emphasis: {itemStyle: {borderColor: theme.ink, borderWidth: 1.5}},
        }],
    };
}

/** Colours from low to high that turn from loss to gain at 1, wherever that lies between them. */
function gainColours(low, high, reach, theme) {
    return Array.from({length: 41}, (_, i) => gainColour(low + ((high - low) * i) / 40, reach, theme));
}

function gainColour(speedup, reach, theme) {
    const gain = (speedup - 1) / reach;
    return echarts.color.lerp(Math.min(1, Math.abs(gain)), [theme.even, gain < 0 ? theme.loss : theme.gain]);
}

function fitHeight(host, heightPx) {
    if (host.clientHeight !== heightPx) {
        host.style.height = `${heightPx}px`;
        echarts.getInstanceByDom(host).resize();
    }
}

// Tables

function addBest(parent, sweep) {
    const number = (head, cell) => ({head, number: true, cell: (row) => {
        const value = cell(row);
        return value === null || value === undefined ? '' : value;
    }});
    const columns = [
        {head: 'Problem', cell: problemName},
        number('Ranks', (row) => formatCount(row.ranks)),
        {head: 'Algorithm', cell: (row) => row.algorithm},
        number('Chunks', (row) => formatCount(row.chunks)),
        number('Rows each', (row) => formatCount(row.chunkRows)),
        number('Lanes', (row) => formatCount(row.lanes)),
        number('Time', (row) => formatUs(row.predictedUs)),
        number('Sequential', (row) => (Number.isFinite(row.sequentialUs) ? formatUs(row.sequentialUs) : '')),
        {...number('Speedup', (row) => (Number.isFinite(row.speedup) ? `${row.speedup.toFixed(2)}x` : '')),
            attributes: (row) => ({'data-value': row.speedup})},
        number('Of the limit', (row) => `${(100 * row.limitFraction).toFixed(0)}%`),
    ];
    parent.append(section('best', 'The best of each problem',
        scroller('Table of the best rows', table(null, columns, sweep.possible.filter((row) => row.best)))));
}

function addRefused(parent, rows) {
    const byReason = new Map();
    for (const row of rows.filter((one) => one.reason)) {
        byReason.set(row.reason, [...(byReason.get(row.reason) || []), row]);
    }
    const part = section('refused', 'Not possible');
    part.classList.add('short');
    for (const [reason, refused] of byReason) {
        part.append(element('details', {class: 'impossible'},
            element('summary', {}, `${reason} (${formatCount(refused.length)})`),
            element('ul', {}, ...refused.map((row) => element('li', {},
                `${row.algorithm} at ${problemName(row)} on ${row.ranks} ranks, `
                    + `splits: ${valueName('splits', row.splits)}`)))));
    }
    parent.append(part);
}
