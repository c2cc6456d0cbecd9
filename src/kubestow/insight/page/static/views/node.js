// One node: its utilization, its pods, and recent rejections.
import { html, useMemo, useState } from "../lib/ui.js";
import { path, useAnswer } from "../lib/api.js";
import { now, records, useNews, when } from "../lib/data.js";
import { setOptions } from "../lib/route.js";
import { count, duration, percent, plural, quantity } from "../lib/format.js";
import { Answer } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { POD_COLUMN, Pod, Side, numbers } from "../parts/common.js";

const COLUMNS = [
	{ ...POD_COLUMN, width: "minmax(100px,1fr)" },
	numbers("priority", "Priority", "90px", { narrow: true }),
	...["cpu", "memory"].map((key, place) => numbers(key, key, place ? "80px" : "56px", { narrow: true, sort: ({ requests }) => requests[key] || 0, cell: ({ requests }) => (requests[key] ? quantity(key, requests[key]) : "–") })),
];

function Usage({ node }) {
	return html`<dl class="usage">${Object.entries(node.allocatable).filter(([, all]) => all > 0).map(([resource, all]) => {
		const used = node.requested[resource] || 0;
		return html`<div key=${resource}><dt>${resource}</dt><dd><span class="meter"><i style=${{ width: `${Math.min(100, (used / all) * 100)}%` }}></i></span>
			<span class="hint">${quantity(resource, used)} of ${quantity(resource, all)} requested (${percent(used / all)})</span></dd></div>`;
	})}</dl>`;
}

export function NodePanel({ name }) {
	const [order, setOrder] = useState("-priority");
	const answer = useAnswer(path("nodes", name), when(), useNews());
	const pods = useMemo(() => (answer.data ? records(answer.data.pods.columns, answer.data.pods.rows) : []), [answer.data]);
	const close = () => {
		setOptions({ node: null });
		document.querySelector(".heatmap canvas, .table")?.focus();
	};
	return html`<${Side} name=${name} label=${`Node ${name}`} close=${close}>
		<${Answer} of=${answer} what="Reading the node">${(node) => html`
			${node.unschedulable && html`<p class="notice warn">Cordoned: new pods are rejected.</p>`}
			<${Usage} node=${node} />
			<h3>${plural(pods.length, "pod")}${node.allowedPods ? ` of ${count(node.allowedPods)}` : ""}</h3>
			${pods.length ? html`<${Table} id="node-pods" label=${`Pods on ${name}`} rows=${pods} columns=${COLUMNS} order=${order} onOrder=${setOrder} />` : html`<p class="hint">No pods on this node.</p>`}
			<h3>Recent rejections</h3>
			${node.refusals.length
				? html`<ul class="list">${node.refusals.map(({ plugin, reasons, count: times, pods: rejected, time }) => html`<li key=${plugin + reasons}><span class="badge bad">${count(times)}</span>
						<div class="grow"><div>${reasons.join(", ") || "no reason given"} <span class="hint">${plugin}, ${duration(Math.max(0, now() - time))} ago</span></div>
						<div class="hint">${rejected.slice(0, 3).map((pod, number) => html`${number > 0 && ", "}<${Pod} key=${pod} pod=${pod} />`)}${rejected.length > 3 && " …"}</div></div></li>`)}</ul>`
				: html`<p class="hint">None in the recorded decisions.</p>`}
			<details><summary>Labels and taints</summary>
				${node.taints.length > 0 && html`<p class="row">${node.taints.map(({ key, value, effect }) => html`<span class="badge warn" key=${key + effect}>${key}${value && `=${value}`}:${effect}</span>`)}</p>`}
				<dl class="facts">${Object.entries(node.labels).map(([key, value]) => html`<dt key=${key}><bdi>${key}</bdi></dt><dd><bdi>${value || "–"}</bdi></dd>`)}</dl></details>
		`}<//>
	<//>`;
}
