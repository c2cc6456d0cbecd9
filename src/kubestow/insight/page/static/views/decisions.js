// Decisions: the newest decisions about all pods.
import { html } from "../lib/ui.js";
import { useAnswer } from "../lib/api.js";
import { useNews, when } from "../lib/data.js";
import { moment, go, route, setOptions } from "../lib/route.js";
import { clock, duration } from "../lib/format.js";
import { Answer, Empty } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Node, Outcome, POD_COLUMN, Title, brief, waited } from "../parts/common.js";

const COLUMNS = [
	{ key: "time", title: "Time", width: "110px", small: "76px", narrow: true, sort: ({ id }) => id, cell: ({ time }) => clock(time) },
	POD_COLUMN,
	{ key: "outcome", title: "Outcome", width: "130px", narrow: true, sort: true, cell: ({ outcome }) => html`<${Outcome} of=${outcome} />` },
	{ key: "where", title: "Node or reason", width: "minmax(200px,3fr)", sort: ({ chosen, message }) => chosen || message, cell: ({ chosen, message }) => (chosen ? html`<${Node} name=${chosen} quiet />` : html`<span title=${message}>${brief(message)}</span>`) },
	{ key: "took", title: "Duration", width: "90px", end: true, sort: (row) => row.seconds, cell: (row) => duration(row.seconds) },
	{ key: "waited", title: "Waited", width: "90px", end: true, sort: waited, cell: (row) => duration(waited(row)) },
];

export function Decisions() {
	const { outcome, plugin } = route.value.options;
	const answer = useAnswer("decisions", { outcome, plugin, limit: 500, nodes: "false", until: moment() == null ? null : new Date(moment() * 1000).toISOString(), run: when().run }, useNews());
	return html`
		<${Title} hint="Newest first. Open a decision for details." controls=${html`<div class="segments" role="group" aria-label="Outcome">${[["", "All"], ["scheduled", "Scheduled"], ["unschedulable", "Unschedulable"], ["error", "Errors"]].map(([name, label]) => html`<button key=${name} aria-pressed=${(outcome || "") === name} onClick=${() => setOptions({ outcome: name })}>${label}</button>`)}</div>`}>Decisions<//>
		${plugin && html`<p class="banner past">Only pods that <strong>${plugin}</strong> rejected. <button onClick=${() => setOptions({ plugin: null })}>Show all</button></p>`}
		<${Answer} of=${answer} what="Reading decisions">${({ items }) => (items.length
			? html`<${Table} id="decisions" fill label="Decisions" rows=${items} columns=${COLUMNS} order=${route.value.options.sort} onOrder=${(sort) => setOptions({ sort })} onOpen=${({ pod }) => go("pod", pod.split("/"))} />`
			: html`<${Empty} title="No ${outcome || plugin ? "matching decisions" : "decisions yet"}" icon="decisions">${outcome || plugin ? "No recorded decision matches." : "Create a pod to see the decision about it here."}<//>`)}<//>`;
}
