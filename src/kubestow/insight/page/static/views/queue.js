// Queue: pods without a node, by state and reason; one of them can be followed.
import { html, useMemo } from "../lib/ui.js";
import { path, useAnswer } from "../lib/api.js";
import { about, now, useQueue, when } from "../lib/data.js";
import { podLink, route, setOptions } from "../lib/route.js";
import { clock, count, duration, plural, splitPod } from "../lib/format.js";
import { Scrubber } from "../parts/scrubber.js";
import { Answer, Empty, Loading } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Bars, Name, Node, Outcome, POD_COLUMN, Side, State, STATES, Title, brief, numbers, tally } from "../parts/common.js";
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

const OWNER_COLUMNS = [
	numbers("size", "Pods", "80px", { narrow: true }),
	{ key: "age", title: "Longest", width: "96px", narrow: true, end: true, sort: ({ created }) => -created, cell: ({ created }) => duration(Math.max(0, Math.round(now() - created))) },
	{ key: "owner", title: "Owner", width: "minmax(200px,1.4fr)", small: "minmax(110px,1fr)", narrow: true, sort: true, cell: ({ owner }) => html`<${Name}>${owner}<//>` },
	{ key: "reason", title: "Reason", width: "minmax(200px,2fr)", sort: ({ cause, reason }) => cause || reason, cell: ({ cause, reason }) => html`<span title=${`${cause ? `${cause}\n` : ""}${reason}`}>${cause || reason || "–"}</span>` },
	{ key: "help", title: "What would help", width: "minmax(150px,1.4fr)", cell: ({ remedy, oldest }) => (remedy ? html`<span title=${remedy.change}>${remedy.change}</span>` : html`<a href=${podLink(oldest)} tabindex="-1">see its oldest pod</a>`) },
];

/** Up to this number of pods, causes are computed without a request, and again every minute: that costs the scheduler. */
const CHEAP = 500;

/** The groups of the overview of pending pods: of one owner, or of all; the overview is computed when it is needed. */
function useCauses({ owner, namespace, causes }, count) {
	const possible = about.value?.can.explain && when().at == null && count > 0;
	const wanted = possible && (owner || causes || count <= CHEAP);
	const again = `${causes || ""} ${count <= CHEAP ? Math.floor(now() / 60) : ""}`;
	const found = useAnswer(wanted ? "pending" : null, { run: when().run, namespace, owner }, again);
	return { found, offered: possible && count > CHEAP && !owner };
}

/** Adds the cause and the change that helps most, from the group of the overview with the same owner and plugin. */
function explained(groups, overview) {
	const known = new Map();
	for (const one of overview?.groups || []) known.set(one.owner, [...(known.get(one.owner) || []), one]);
	return groups.map((group) => {
		const same = known.get(group.owner) || [];
		const one = same.find(({ plugin }) => group.plugins.includes(plugin)) || (same.length === 1 ? same[0] : null);
		return one ? { ...group, cause: one.cause, remedy: one.remedy } : group;
	});
}

/** Pods of one owner with the same reason, as one row. */
function byOwner(rows) {
	const groups = new Map();
	for (const row of rows) {
		const owner = row.owner || `Pod ${row.pod}`, reason = brief(row.reason), key = `${owner}\n${reason}`;
		const group = groups.get(key) || { uid: key, owner, reason, plugins: row.plugins, size: 0, created: row.created, oldest: row.pod };
		groups.set(key, group);
		group.size += 1;
		if (row.created < group.created) Object.assign(group, { created: row.created, oldest: row.pod });
	}
	return [...groups.values()];
}

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
	const { state, reason, plugin, owner, namespace, filter = "", follow } = options;
	const grouped = options.by !== "pods" && !owner && !follow && !filter;
	const data = answer.data;
	const inState = useMemo(() => (data ? data.rows.filter((row) => (!state || row.state === state) && (!namespace || row.pod.startsWith(`${namespace}/`))) : []), [data, state, namespace]);
	const namespaces = useMemo(() => [...new Set((data?.rows || []).map(({ pod }) => splitPod(pod)[0]))].sort(), [data]);
	const reasons = useMemo(() => tally(inState.filter((row) => row.reason), (row) => brief(row.reason)), [inState]);
	const rows = useMemo(() => {
		const text = filter.toLowerCase();
		const why = reason && brief(reason);
		return inState.filter((row) => (!why || brief(row.reason) === why) && (!plugin || row.plugins.includes(plugin)) && (!owner || (row.owner || `Pod ${row.pod}`) === owner)
			&& (!text || `${row.pod} ${row.reason} ${row.plugins.join(" ")} ${row.event} ${row.group}`.toLowerCase().includes(text)));
	}, [inState, reason, plugin, owner, filter]);
	const causes = useCauses(options, data?.rows.length || 0);
	const groups = useMemo(() => (grouped ? explained(byOwner(rows), causes.found.data) : []), [rows, grouped, causes.found.data]);
	const owners = useMemo(() => tally(inState, (row) => row.owner || `Pod ${row.pod}`).slice(0, 200), [inState]);
	return html`<${Answer} of=${answer} what="Reading the queue">${() => html`
		<${Title} controls=${html`<input type="search" aria-label="Filter the queue" placeholder="Filter by name, reason, event" value=${filter} onInput=${(event) => setOptions({ filter: event.target.value })} />`}>Queue<//>
		<div class="chips" role="group" aria-label="State">
			<button aria-pressed=${!state} onClick=${() => setOptions({ state: null, reason: null })}>All <b>${count(data.rows.length)}</b></button>
			${Object.entries(STATES).filter(([name, { ofGroups }]) => !ofGroups || name in data.counts).map(([name, { title, hint }]) => html`<button key=${name} title=${hint} aria-pressed=${state === name} onClick=${() => setOptions({ state: state === name ? null : name, reason: null })}>${title} <b>${count(data.counts[name] || 0)}</b></button>`)}
		</div>
		<div class="row"><div class="segments" role="group" aria-label="Rows">
			<button aria-pressed=${grouped} onClick=${() => setOptions({ by: null, owner: null, follow: null, filter: null })}>By owner</button><button aria-pressed=${!grouped} onClick=${() => setOptions({ by: "pods" })}>Pods</button></div>
			${namespaces.length > 1 && html`<select aria-label="Namespace" onChange=${(event) => setOptions({ namespace: event.target.value || null })}><option value="">All namespaces</option>${namespaces.map((name) => html`<option key=${name} value=${name} selected=${name === namespace}>${name}</option>`)}</select>`}
			${(owners.length > 1 || owner) && html`<select aria-label="Owner" onChange=${(event) => setOptions({ owner: event.target.value || null, reason: null })}><option value="">All owners</option>${owners.map(([name, size]) => html`<option key=${name} value=${name} selected=${name === owner}>${name} (${count(size)})</option>`)}</select>`}
			${causes.offered && html`<button onClick=${() => setOptions({ causes: Math.round(now()) })}>${causes.found.data ? "Find the causes again" : "Find the causes"}</button>`}
			${causes.found.error && html`<span class="hint">${causes.found.error.message}</span>`}</div>
		${(plugin || reason || owner) && html`<p class="banner past">Only pods ${[owner && html`of <strong>${owner}</strong> `, plugin && html`blocked by <strong>${plugin}</strong> `, reason && html`with <strong>${brief(reason)}</strong>`]}. <button onClick=${() => setOptions({ plugin: null, reason: null, owner: null })}>Show all</button></p>`}
		${owner && (causes.found.data?.groups || []).map(({ cause, remedy, count: size }) => html`<p class="hint" key=${cause}>${cause}${remedy && html`<br />→ ${remedy.change} (helps ${remedy.atLeast ? "at least " : ""}${count(remedy.helps)} of ${count(size)})`}</p>`)}
		${(causes.found.data?.notes || []).map((note) => html`<p class="hint" key=${note}>${note}</p>`)}
		${data.rows.length === 0 && !follow ? html`<${Empty} title="No pending pods" icon="queue">${about.value.live ? "Every pod has a node. New pods appear here when they are created." : "At this moment every pod had a node."}<//>`
		: html`
			${!reason && !owner && reasons.length > 0 && html`<${Bars} label="Reasons" all=${inState.length} items=${reasons.slice(0, 4).map(([text, size]) => ({ key: text, size, text, title: text }))} onPick=${(text) => setOptions({ reason: text })}>
				${reasons.length > 4 && html`<li class="hint">${plural(reasons.length - 4, "more reason")}</li>`}<//>`}
			<div class=${follow ? "beside open" : "beside"}>
				${grouped && groups.length ? html`<${Table} id="owners" fill label="Owners of pods in the queue" rows=${groups} columns=${OWNER_COLUMNS} order=${options.sort || "-age"} onOrder=${(sort) => setOptions({ sort })}
						onOpen=${(group) => setOptions({ owner: group.owner, reason: group.reason || null, sort: null })} />`
					: rows.length ? html`<${Table} id="queue" fill label="Pods in the queue" rows=${rows} columns=${COLUMNS} order=${options.sort || "-age"} onOrder=${(sort) => setOptions({ sort })}
						chosen=${({ uid }) => uid === follow} onOpen=${({ uid, pod }) => setOptions({ follow: uid, pod })} />`
					: html`<${Empty} title="No matching pods" icon="search">None of ${plural(data.rows.length, "pod")} in the queue matches.<//>`}
				${follow && html`<${Followed} key=${follow} uid=${follow} row=${data.byUid.get(follow)} pod=${data.byUid.get(follow)?.pod || options.pod} />`}
			</div>`}
		<${Scrubber} />`}<//>`;
}
