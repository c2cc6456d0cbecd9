// Time: charts, on which the moment for the other views is selected.
import { html, useMemo } from "../lib/ui.js";
import { about } from "../lib/data.js";
import { moment, link, setOptions } from "../lib/route.js";
import { theme } from "../lib/theme.js";
import { count, duration, figure, percent } from "../lib/format.js";
import { kinds } from "../parts/canvas.js";
import { Chart } from "../parts/chart.js";
import { Scrubber, pendingOf, useTimes } from "../parts/scrubber.js";
import { Answer, Empty } from "../parts/states.js";
import { STATES, Tile, Title } from "../parts/common.js";

const total = (values) => values.reduce((sum, value) => sum + (value || 0), 0);
const rate = (counts, spans) => counts.map((number, point) => number / spans[point]);

const COLOURS = { active: 0, backoff: 4, unschedulable: 1, gated: 7, inFlight: 2, waiting: 5, incomplete: 3 };

function charts(data, colours) {
	const line = (name, values, place) => ({ name, values, colour: colours[place % 8] });
	const plugins = Object.entries(data.plugins).sort((one, other) => total(other[1]) - total(one[1])).slice(0, 6);
	return [
		{ title: "Pods per second", lines: [line("bound", rate(data.bound, data.seconds), 0), line("attempts", rate(data.attempts, data.seconds), 7)] },
		{ title: "Pending pods", lines: Object.entries(data.pending).map(([name, values]) => line(STATES[name]?.title || name, values, COLOURS[name] ?? 6)), format: count },
		{ title: "Scheduling cycle", lines: [line("median", data.cycle.p50, 0), line("99 %", data.cycle.p99, 5)], format: duration },
		{ title: "From first attempt to bound", lines: [line("median", data.wait.p50, 0), line("90 %", data.wait.p90, 3), line("99 %", data.wait.p99, 5)], format: duration },
		{ title: "Preemptions", lines: [line("preemptions", data.preemptions, 1), line("victims", data.victims, 5)], format: count },
		{ title: "Time in plugins per second, in one cycle of ten", lines: plugins.map(([name, values], place) => line(name, rate(values, data.seconds), place)), format: duration },
		{ title: "Requested share of allocatable", lines: Object.entries(data.requested).slice(0, 6).map(([name, values], place) => line(name, values, place)), format: percent },
		{ title: "Nodes", lines: [line("nodes", data.nodes, 2)], format: count },
	].filter(({ lines }) => lines.length);
}

export function Time() {
	const answer = useTimes(600, 2);
	const colours = useMemo(kinds, [theme.value]);
	const drawn = useMemo(() => answer.data && charts(answer.data, colours), [answer.data, colours]);
	return html`<${Answer} of=${answer} what="Reading figures">${(data) => html`
		<${Title} hint=${html`Click a chart to see the <a href=${link("cluster")}>cluster</a> and the <a href=${link("queue")}>queue</a> at that moment.`}>Time<//>
		${data.time.length < 2 ? html`<${Empty} title="No figures yet" icon="time">${about.value.live ? "The first figures appear in a few seconds." : "This recording has no figures."}<//>`
		: html`
			<dl class="tiles">
				${Object.entries({ Bound: total(data.bound), Attempts: total(data.attempts), "Most per second": Math.max(...rate(data.bound, data.seconds)), "Most pending": Math.max(...pendingOf(data)), Preemptions: total(data.preemptions) })
					.map(([name, number]) => html`<${Tile} key=${name} name=${name}>${figure(number)}<//>`)}
			</dl>
			<${Scrubber} />
			<div class="charts">${drawn.map(({ title, lines, format }) => html`<${Chart} key=${title} title=${title} times=${data.time} lines=${lines} format=${format || figure} at=${moment()} onPick=${(moment) => setOptions({ at: moment.toFixed(2) })} />`)}</div>`}`}<//>`;
}
