// What went from which rank to which.

function addLinks(parent, links) {
    const total = links.links.reduce((sum, cell) => sum + cell.bytes, 0);
    const transfers = links.links.reduce((sum, cell) => sum + cell.transfers, 0);
    const few = links.ranks <= 16;
    const cellPx = Math.max(11, Math.min(52, 440 / links.ranks));
    const sidePx = Math.round(cellPx * links.ranks);
    const host = chartHost('Bytes from each rank to each other rank', sidePx + 92);
    const box = element('div', few ? {class: 'split'} : {}, host, few ? element('div', {}, linksTable(links)) : null);
    const text = links.inPlace
        ? `Nothing was moved: ${formatBytes(total)} were read in place, in ${formatCount(transfers)} blocks.`
        : `${formatBytes(total)} went over ${formatCount(links.links.length)} links `
            + `in ${formatCount(transfers)} transfers.`;
    parent.append(section('links', 'What went from rank to rank', lead(text), box, asTable('links', cellsTable(links))));
    const chart = addChart(host, () => linksOption(links, host.clientWidth, sidePx));
    tipOn(chart, ({dataIndex}) => {
        const cell = links.links[dataIndex];
        return cell && {
            title: `rank ${cell.from} → rank ${cell.to}`,
            rows: cellFigures(links).map(([label, figure]) => [label, figure(cell)]),
        };
    });
}

/** What there is to say of a cell, as [label, figure(cell)]; what was read in place took no time of its own. */
function cellFigures({inPlace}) {
    const figures = [
        ['Bytes', (cell) => `${formatCount(cell.bytes)} (${formatBytes(cell.bytes)})`],
        [inPlace ? 'Blocks' : 'Transfers', (cell) => formatCount(cell.transfers)],
        ['Speed', (cell) => formatRate(cell.bytes, cell.busyNs, 'B')],
    ];
    return inPlace ? figures.slice(0, 2) : figures;
}

const MOST_CELLS = 256;

function cellsTable(links) {
    const largest = [...links.links].sort((a, b) => b.bytes - a.bytes).slice(0, MOST_CELLS);
    const left = links.links.length - largest.length;
    const caption = left > 0 ? `The largest ${MOST_CELLS} of ${formatCount(links.links.length)}.` : null;
    return table(caption, [
        {head: 'From', cell: (cell) => `rank ${cell.from}`},
        {head: 'To', cell: (cell) => `rank ${cell.to}`},
        ...cellFigures(links).map(([head, cell]) => ({head, number: true, cell})),
    ], largest);
}

function linksTable(links) {
    const ranks = [...new Set(links.links.flatMap((cell) => [cell.from, cell.to]))].sort((a, b) => a - b);
    const sum = (cells, field) => cells.reduce((total, cell) => total + cell[field], 0);
    const sent = (rank) => links.links.filter((cell) => cell.from === rank);
    const received = (rank) => links.links.filter((cell) => cell.to === rank);
    const {inPlace} = links;
    const columns = [
        {head: 'Rank', cell: (rank) => `${rank}`},
        {head: inPlace ? 'Read by others' : 'Sent', number: true,
            cell: (rank) => formatBytes(sum(sent(rank), 'bytes'))},
        {head: inPlace ? 'Read of others' : 'Received', number: true,
            cell: (rank) => formatBytes(sum(received(rank), 'bytes'))},
    ];
    if (!inPlace) {
        columns.push({head: 'While receiving', number: true, cell: (rank) => (received(rank).length === 0 ? ''
            : formatRate(sum(received(rank), 'bytes'), sum(received(rank), 'busyNs'), 'B'))});
    }
    return table(null, columns, ranks);
}

function linksOption(links, width, sidePx) {
    const theme = pageTheme();
    const names = Array.from({length: links.ranks}, (_, i) => `${i}`);
    const largest = largestOf(links.links.map((cell) => cell.bytes));
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
            type: 'heatmap', progressive: 0, data: links.links.map((cell) => linkItem(cell, labelled, largest, theme)),
            itemStyle: {borderColor: theme.bg, borderWidth: fine ? 0.5 : 2},
            label: {show: labelled, fontSize: 12,
                formatter: ({dataIndex}) => formatBytes(links.links[dataIndex].bytes)},
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
