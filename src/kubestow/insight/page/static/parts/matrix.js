// Nodes by plugins: the outcomes first, then a table of nodes, in which a stronger colour is a higher score.
import { html, useMemo, useState } from "../lib/ui.js";
import { figure, plural } from "../lib/format.js";
import { Table } from "./table.js";
import { Bars, Node } from "./common.js";

const MOST = 12;
const describe = ({ plugin, reasons, others }) => `${plugin}: ${reasons.join(", ") || "no reason given"}${others?.length ? `; also ${others.join(", ")}` : ""}`;

/** Nodes by outcome: `{index, title, plugin, rows}`; index -1 has the feasible nodes. */
function outcomes(matrix) {
	const rows = new Map([[-1, []], ...matrix.refusals.map((_, index) => [index, []])]);
	matrix.refusal.forEach((index, row) => rows.get(index)?.push(row));
	return [...rows].filter(([, nodes]) => nodes.length).map(([index, nodes]) => ({
		index, rows: nodes, plugin: matrix.refusals[index]?.plugin, title: index < 0 ? "feasible" : matrix.refusals[index].reasons.join(", ") || "no reason given",
	}));
}

/** Columns of a matrix: those without a value for any node are left out. */
function columnsOf(matrix) {
	const scored = matrix.total.some((total) => total != null);
	return [
		{ key: "node", title: "Node", width: "minmax(140px,2fr)", small: "minmax(90px,1fr)", narrow: true, sort: (row) => matrix.nodes[row], cell: (row) => html`<${Node} name=${matrix.nodes[row]} quiet />` },
		scored && { key: "total", title: "Total", width: "76px", small: "66px", narrow: true, end: true, sort: (row) => matrix.total[row], cell: (row) => (matrix.total[row] == null ? "–" : figure(matrix.total[row])) },
		matrix.refusals.length > 0 && { key: "why", title: "Rejected by", width: "minmax(150px,3fr)", small: "minmax(120px,2fr)", narrow: true, sort: (row) => matrix.refusal[row], cell: (row) => {
			const refusal = matrix.refusals[matrix.refusal[row]];
			return refusal ? html`<span title=${describe(refusal)}>${describe(refusal)}</span>` : html`<span class="badge ok">feasible</span>`;
		} },
		...matrix.plugins.map((plugin) => {
			const scores = matrix.scores[plugin];
			const top = Math.max(1, ...scores.filter(Number.isFinite));
			return {
				// Names are wrapped between their words.
				key: plugin, title: plugin.replace(/\B[A-Z][a-z]/g, "\u200b$&"), width: "minmax(96px,1fr)", end: true, sort: (row) => scores[row],
				cell: (row) => (scores[row] == null ? "–" : html`<span class="score" style=${{ "--share": `${Math.max(0, (scores[row] / top) * 40)}%` }} title=${`raw ${figure(matrix.raw?.[plugin]?.[row])}`}>${figure(scores[row])}</span>`),
			};
		}),
	].filter(Boolean);
}

/** The outcomes with their sizes, and the nodes of the selected one; closed if the outcomes say everything. */
export function Matrix({ matrix, chosen, picked, onPick }) {
	const groups = useMemo(() => outcomes(matrix), [matrix]);
	const columns = useMemo(() => columnsOf(matrix), [matrix]);
	const [order, setOrder] = useState(null);
	const all = useMemo(() => [...matrix.nodes.keys()], [matrix]);
	const group = groups.find(({ index }) => String(index) === picked);
	const rows = group ? group.rows : all;
	if (!matrix.nodes.length) return html`<p class="hint">No details about nodes.</p>`;
	return html`
		<${Bars} label="Outcomes of nodes" all=${matrix.nodes.length} picked=${picked} onPick=${onPick}
			items=${groups.map(({ index, title, plugin, rows: nodes }) => ({ key: String(index), size: nodes.length, tone: index < 0 ? "good" : "poor", text: html`${plugin && html`<span class="hint">${plugin}:</span> `}${title}` }))}>
			${matrix.left > 0 && html`<li class="hint">${plural(matrix.left, "more node")} not shown</li>`}<//>
		<details open=${group != null || matrix.plugins.length > 0 || (groups.length > 1 && rows.length <= MOST)}><summary>${group ? plural(rows.length, "node") : `All ${plural(rows.length, "node")}`} in a table</summary>
			<${Table} id="matrix" label="Nodes and their scores" rows=${rows} columns=${columns} order=${order} onOrder=${setOrder} chosen=${(row) => matrix.nodes[row] === chosen} /></details>`;
}
