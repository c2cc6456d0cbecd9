// Queue: pods without a node, by state and reason; one of them can be followed.
import { html, useMemo } from "../lib/ui.js";
import { path, useAnswer } from "../lib/api.js";
import { about, now, useQueue, when } from "../lib/data.js";
import { podLink, route, setOptions } from "../lib/route.js";
import { clock, count, duration, plural, splitPod } from "../lib/format.js";
import { Scrubber } from "../parts/scrubber.js";
import { Answer, Empty, Loading } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Bars, Node, Outcome, POD_COLUMN, Side, State, STATES, Title, brief, numbers, tally } from "../parts/common.js";
import { Moves } from "../parts/strip.js";

const until = (moment) => (moment == null ? "–" : moment <= now() ? "due" : `in ${duration(moment - now())}`);
const woken = ({ event, hint }) => (event ? `${event}${hint ? ` (${hint})` : ""}` : "–");
const COLUMNS = [
	{ ...POD_COLUMN, width: "minmax(250px,2fr)" },
	{ key: "state", title: "State", width: "144px", small: "130px", narrow: true, sort: true, cell: ({ state }) => html`<${State} of=${state} />` },
	{ key: "reason", title: "Reason", width: "minmax(150px,2.4fr)", sort: true, cell: ({ reason }) => html`<span title=${reason}>${brief(reason) || "–"}</span>` },
	numbers("priority", "Priority", "80px"),
	numbers("attempts", "Attempts", "92px"),
	{ key: "age", title: "Age", width: "92px", narrow: true, end: true, sort: ({ created }) => -created, cell: ({ created }) => duration(Math.max(0, Math.round(now() - created))) },
	{ key: "retry", title: "Next retry", width: "106px", end: true, sort: true, cell: ({ retry }) => until(retry) },
	{ key: "event", title: "Requeued by", width: "minmax(110px,1fr)", sort: woken, cell: woken },
];

/** The followed pod: its state in the queue, then the outcome. */
function Followed({ uid, row, pod }) {
	const moves = useAnswer(row ? path("queue", uid) : null, when(), row ? row.since + row.state + row.attempts : 0);
	const last = useAnswer(!row && pod ? path("decisions", ...splitPod(pod)) : null, { ...when() });
	return html`<${Side} name=${pod} label=${`Following ${pod}`} close=${() => setOptions({ follow: null, pod: null })}>
		<div aria-live="polite">${row
			? html`<p class="row"><${State} of=${row.state} /> <span class="hint">${STATES[row.state]?.hint}</span></p>
				${row.reason && html`<p>${row.reason}</p>`}`
			: html`<${Answer} of=${last} what="Reading its last decision">${({ decision }) => html`<p class="row"><${Outcome} of=${decision.outcome} /> ${decision.chosen ? html`<span>on <${Node} name=${decision.chosen} /></span>` : html`<span>left the queue</span>`}</p>`}<//>`}</div>
		${row && html`<dl class="facts"><dt>Created</dt><dd>${clock(row.created)}</dd><dt>In this state since</dt><dd>${clock(row.since)}</dd><dt>Attempts</dt><dd>${count(row.attempts)}</dd><dt>Next retry</dt><dd>${until(row.retry)}</dd>
			${row.plugins.length > 0 && html`<dt>Blocked by</dt><dd>${row.plugins.join(", ")}</dd>`}${row.node && html`<dt>Node</dt><dd><${Node} name=${row.node} /></dd>`}</dl>
			<h3>Moves</h3>${moves.data ? html`<${Moves} history=${moves.data.history} />` : html`<${Loading} what="Reading its moves" />`}`}
		<a class="button" href=${podLink(pod)}>Open the decision</a>
	<//>`;
}

export function Queue() {
	const answer = useQueue();
	const { options } = route.value;
	const { state, reason, plugin, filter = "", follow } = options;
	const data = answer.data;
	const inState = useMemo(() => (data ? data.rows.filter((row) => !state || row.state === state) : []), [data, state]);
	const reasons = useMemo(() => tally(inState.filter((row) => row.reason), (row) => brief(row.reason)), [inState]);
	const rows = useMemo(() => {
		const text = filter.toLowerCase();
		const why = reason && brief(reason);
		return inState.filter((row) => (!why || brief(row.reason) === why) && (!plugin || row.plugins.includes(plugin))
			&& (!text || `${row.pod} ${row.reason} ${row.plugins.join(" ")} ${row.event} ${row.group}`.toLowerCase().includes(text)));
	}, [inState, reason, plugin, filter]);
	return html`<${Answer} of=${answer} what="Reading the queue">${() => html`
		<${Title} controls=${html`<input type="search" aria-label="Filter the queue" placeholder="Filter by name, reason, event" value=${filter} onInput=${(event) => setOptions({ filter: event.target.value })} />`}>Queue<//>
		<div class="chips" role="group" aria-label="State">
			<button aria-pressed=${!state} onClick=${() => setOptions({ state: null, reason: null })}>All <b>${count(data.rows.length)}</b></button>
			${Object.entries(STATES).filter(([name, { ofGroups }]) => !ofGroups || name in data.counts).map(([name, { title, hint }]) => html`<button key=${name} title=${hint} aria-pressed=${state === name} onClick=${() => setOptions({ state: state === name ? null : name, reason: null })}>${title} <b>${count(data.counts[name] || 0)}</b></button>`)}
		</div>
		${(plugin || reason) && html`<p class="banner past">Only pods ${plugin ? html`blocked by <strong>${plugin}</strong>` : html`with <strong>${brief(reason)}</strong>`}. <button onClick=${() => setOptions({ plugin: null, reason: null })}>Show all</button></p>`}
		${data.rows.length === 0 && !follow ? html`<${Empty} title="No pending pods" icon="queue">${about.value.live ? "Every pod has a node. New pods appear here when they are created." : "At this moment every pod had a node."}<//>`
		: html`
			${!reason && reasons.length > 0 && html`<${Bars} label="Reasons" all=${inState.length} items=${reasons.slice(0, 4).map(([text, size]) => ({ key: text, size, text, title: text }))} onPick=${(text) => setOptions({ reason: text })}>
				${reasons.length > 4 && html`<li class="hint">${plural(reasons.length - 4, "more reason")}</li>`}<//>`}
			<div class=${follow ? "beside open" : "beside"}>
				${rows.length ? html`<${Table} id="queue" fill label="Pods in the queue" rows=${rows} columns=${COLUMNS} order=${options.sort || "-age"} onOrder=${(sort) => setOptions({ sort })}
						chosen=${({ uid }) => uid === follow} onOpen=${({ uid, pod }) => setOptions({ follow: uid, pod })} />`
					: html`<${Empty} title="No matching pods" icon="search">None of ${plural(data.rows.length, "pod")} in the queue matches.<//>`}
				${follow && html`<${Followed} key=${follow} uid=${follow} row=${data.byUid.get(follow)} pod=${data.byUid.get(follow)?.pod || options.pod} />`}
			</div>`}
		<${Scrubber} />`}<//>`;
}
