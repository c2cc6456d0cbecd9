// Pod groups; for one group, its placements and the reasons why pods found no node there.
import { html } from "../lib/ui.js";
import { path, useAnswer } from "../lib/api.js";
import { records, useNews, when } from "../lib/data.js";
import { go, link, route } from "../lib/route.js";
import { count, plural } from "../lib/format.js";
import { WouldFit } from "../parts/decision.js";
import { Answer, Empty } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Name, Node, Outcome, Pod, Title, numbers } from "../parts/common.js";

const COLUMNS = [
	{ key: "group", title: "Group", width: "minmax(160px,2fr)", narrow: true, sort: true, cell: ({ group }) => html`<a href=${link("groups", group.split("/"))} tabindex="-1"><${Name}>${group}<//></a>` },
	{ key: "state", title: "State", width: "150px", small: "110px", narrow: true, sort: ({ pending }) => pending, cell: ({ pending, scheduled }) => (pending ? html`<span class="badge bad">${plural(pending, "pod")} pending</span>` : scheduled ? html`<span class="badge ok">scheduled</span>` : html`<span class="badge">no pods</span>`) },
	numbers("minCount", "At least", "90px"),
	numbers("scheduled", "Scheduled", "96px", { narrow: true }),
	{ key: "nodes", title: "Nodes", width: "minmax(140px,2fr)", cell: ({ nodes }) => nodes.slice(0, 4).map((name, place) => html`${place > 0 && ", "}<${Node} key=${name} name=${name} quiet />`) },
];

const Placements = ({ placements, minCount }) => html`<section class="panel"><h2>Evaluated placements</h2>
	<ul class="stack placements">${placements.map(({ name, nodes, placed, reasons = [] }, number) => html`<li key=${number}>
		<div class="row"><strong class="grow"><bdi>${name || "all nodes"}</bdi></strong><span class="hint">${plural(nodes, "node")}</span></div>
		<span class="meter"><i class=${placed >= minCount ? "good" : ""} style=${{ width: `${Math.min(100, (placed / Math.max(1, minCount)) * 100)}%` }}></i></span>
		<div class="hint"><strong>${count(placed)} of ${count(minCount)}</strong> ${minCount === 1 ? "pod" : "pods"} found a node${reasons.length ? `; rejections of the next pod: ${reasons.join(", ")}` : ""}</div></li>`)}</ul></section>`;

function Group({ names }) {
	const answer = useAnswer(path("groups", ...names), when());
	const title = names.join("/");
	return html`<p><a href=${link("groups")}>All groups</a></p>
		<${Answer} of=${answer} what="Evaluating the group in a copy of the cluster">${({ decision, wouldFitIf, notes }) => {
			const { outcome, chosen = {}, message, placements = [], minCount, pods, scheduled, missing } = decision;
			return html`<${Title}><${Name}>${decision.podGroup || title}<//><//>
					<p class="row"><${Outcome} of=${outcome} /><span>${[minCount != null && `at least ${plural(minCount, "pod")} at once`, pods != null && `${count(pods)} pending`, scheduled != null && `${count(scheduled)} scheduled`, missing ? `${count(missing)} missing` : null].filter(Boolean).join(", ")}</span></p>
				${message && html`<p class="notice bad">${message}</p>`}
				<div class="columns">${outcome !== "scheduled" && html`<${WouldFit} changes=${wouldFitIf || []} stuck />`}
					${placements.length > 0 && html`<${Placements} placements=${placements} minCount=${minCount || pods || 1} />`}
					${Object.keys(chosen).length > 0 && html`<section class="panel"><h2>Nodes of its pods</h2><ul class="list">${Object.entries(chosen).map(([pod, node]) => html`<li key=${pod}><span class="grow"><${Pod} pod=${pod} /></span><${Node} name=${node} /></li>`)}</ul></section>`}</div>
				${(notes || []).map((note) => html`<p class="hint" key=${note}>${note}</p>`)}`;
		}}<//>`;
}

export function Groups() {
	const { parts, options } = route.value;
	const answer = useAnswer(parts.length ? null : "groups", when(), useNews());
	if (parts.length) return html`<${Group} key=${parts.join("/")} names=${parts} />`;
	return html`<${Title} hint="Pods that are scheduled together; a gang with at least its minimum count or not at all.">Pod groups<//>
		<${Answer} of=${answer} what="Reading groups">${({ columns, rows }) => (rows.length
			? html`<${Table} id="groups" fill label="Pod groups" rows=${records(columns, rows)} columns=${COLUMNS} order=${options.sort || "-state"} onOpen=${({ group }) => go("groups", group.split("/"))} />`
			: html`<${Empty} title="No pod groups" icon="groups">Pods with a pod group are scheduled together. This requires the feature gate <code>GenericWorkload</code>.<//>`)}<//>`;
}
