// The page that compares several runs.

function compareSections(data) {
    const {runs} = data;
    return [
        {id: 'runs', shows: runs.map((run) => [run.name, run.verdict, run.facts]),
            add: (parent) => addRunTable(parent, runs)},
        {id: 'views', shows: runs.map((run) => run.views), add: (parent) => addComparedViews(parent, runs)},
        {id: 'speedups', shows: runs.map((run) => run.facts), add: (parent) => addComparedFacts(parent, runs)},
        ...runs.map((run, i) => ({run, i})).filter(({run}) => run.idle && run.idle.length > 0).map(({run, i}) => (
            {id: `idle-${i}`, shows: run.idle, add: (parent) => addRunIdle(parent, run, i)})),
    ];
}

function runColours(runs) {
    return sourceColours(runs.length, pageTheme());
}

function addRunTable(parent, runs) {
    const keys = [...new Map(runs.flatMap((run) => run.facts.map((fact) => [fact.key, fact.label])))];
    const fact = (run, key) => run.facts.find((one) => one.key === key);
    const named = (run) => {
        const i = runs.indexOf(run);
        const name = run.idle && run.idle.length > 0 ? element('a', {href: `#idle-${i}`}, run.name) : run.name;
        return element('span', {}, name, element('span', {class: 'hint'}, element('br'), run.subtitle));
    };
    const columns = [
        {head: 'Run', cell: named, attributes: (run) => ({'data-run': run.name})},
        {head: 'Verdict', cell: (run) => verdictBadge(run.verdict), attributes: (run) => ({title: run.verdict.text})},
        ...keys.map(([key, label]) => ({head: label, number: true,
            cell: (run) => (fact(run, key) ? fact(run, key).text : ''),
            attributes: (run) => {
                const given = fact(run, key);
                return given ? {'data-fact': key, 'data-value': given.value === null ? '' : given.value} : {};
            }})),
    ];
    parent.append(section('runs', 'The runs', scroller('Table of the runs', table(null, columns, runs))));
}

function addComparedViews(parent, runs) {
    const views = [...new Map(runs.flatMap((run) => run.views.map((view) => [view.key, view.label])))];
    const keyHost = element('div', {});
    const barPx = runs.length > 6 ? 14 : 20;
    const host = chartHost('Times of each view in each run', 50 + views.length * (runs.length * (barPx + 4) + 22));
    const text = `Bars are medians, dots are single calls.${drawnText(runs.flatMap((run) => run.views))}`;
    parent.append(section('views', 'Views side by side', lead(text), keyHost, host,
        asTable('views', comparedTable(runs))));
    const viewOf = (run, key) => run.views.find((view) => view.key === key);
    const chart = addChart(host, () => {
        const theme = pageTheme();
        const colours = runColours(runs);
        keyHost.replaceChildren(colourKey(runs.map((run, i) => ({colour: colours[i], text: run.name}))));
        const largest = 1000 * largestOf(runs.flatMap((run) => run.views.map(longestUs)));
        return {
            grid: {left: 108, right: 78, top: 6, bottom: 30},
            xAxis: valueAxis(theme, (value) => formatTick(value * 1000, largest)),
            yAxis: nameAxis(theme, views.map(([, label]) => label), {inverse: true}, 13),
            series: [
                ...runs.map((run, i) => ({
                    type: 'bar', name: run.name, barWidth: barPx, barGap: '20%', cursor: 'default',
                    itemStyle: {color: colours[i]},
                    data: views.map(([key]) => (viewOf(run, key) ? viewOf(run, key).medianUs : null)),
                })),
                ...runs.flatMap((run, i) =>
                    comparedDots(run, views, (i - (runs.length - 1) / 2) * barPx * 1.2, barPx, theme)),
            ],
        };
    });
    tipOn(chart, ({data, seriesName, dataIndex, seriesType}) => (seriesType === 'scatter' ? data.tip
        : {title: seriesName, rows: [['View', views[dataIndex][1]], ['Median', formatUs(data)]]}));
}

/** Dots and medians of one run, moved from the middle of each group of bars to the run's own bar. */
function comparedDots(run, views, offset, barPx, theme) {
    const found = views.map(([key], row) => ({row, view: run.views.find((view) => view.key === key)}))
        .filter(({view}) => view);
    return [
        dotSeries(found.flatMap(({row, view}) => sampleDots(view, run.name, row, barPx - 6, offset)), theme),
        wordsSeries(found.map(({row, view}) => wordsAt(longestUs(view), row, offset, formatUs(view.medianUs), theme))),
    ];
}

function comparedTable(runs) {
    return table(null, [
        {head: 'Run', cell: ({run}) => run.name},
        {head: 'View', cell: ({view}) => view.label},
        {head: 'Median', number: true, cell: ({view}) => formatUs(view.medianUs)},
        {head: 'Mean', number: true, cell: ({view}) => formatUs(meanOf(view.samplesUs))},
        {head: 'Spread', number: true, cell: ({view}) => (view.samplesUs.length < 2 ? '' : formatUs(view.spreadUs))},
        {head: 'Samples', number: true, cell: ({view}) => formatCount(view.samplesUs.length)},
    ], runs.flatMap((run) => run.views.map((view) => ({run, view}))));
}

function addComparedFacts(parent, runs) {
    const box = element('div', {class: 'halves'});
    const shownFacts = [['speedup', 'Speedup over sequential'], ['limitFraction', 'Share of the limit reached']]
        .filter(([key]) => runs.some((run) => run.facts.some((fact) => fact.key === key && fact.value !== null)));
    if (shownFacts.length === 0) {
        return;
    }
    parent.append(section('speedups', 'What overlap bought', box));
    for (const [key, label] of shownFacts) {
        const host = chartHost(`${label} of each run`, 44 + runs.length * 32);
        box.append(element('div', {}, element('h3', {}, label), host));
        const facts = runs.map((run) => run.facts.find((fact) => fact.key === key) || {value: null, text: ''});
        const chart = addChart(host, () => factOption(runs, facts, host.clientWidth, key === 'speedup'));
        tipOn(chart, ({dataIndex}) => (
            {title: runs[dataIndex].name, rows: [[label, facts[dataIndex].text]], note: facts[dataIndex].note}));
    }
}

function factOption(runs, facts, width, markOne) {
    const theme = pageTheme();
    const colours = runColours(runs);
    return {
        grid: {left: Math.min(170, width * 0.35), right: 78, top: 4, bottom: 26},
        xAxis: valueAxis(theme, (value) => `${value}`),
        yAxis: nameAxis(theme, runs.map((run) => shortName(run.name, width < 420 ? 16 : 26)), {inverse: true}),
        series: [{
            type: 'bar', barWidth: 18, cursor: 'default',
            data: facts.map((fact, i) => ({value: fact.value, itemStyle: {color: colours[i]}})),
            markLine: markOne ? lineAt(1, theme, '') : undefined,
        }, wordsSeries(facts.map((fact, i) => ({fact, i})).filter(({fact}) => fact.value !== null)
            .map(({fact, i}) => wordsAt(fact.value, i, 0, fact.text, theme)))],
    };
}

function addRunIdle(parent, run, index) {
    const part = section(`idle-${index}`, `Where the time went: ${run.name}`, lead(run.subtitle), lead(run.idleText));
    parent.append(part);
    addIdleChart(part, run);
}
