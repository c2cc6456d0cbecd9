// Nodes by plugins: the outcomes first, then the nodes of the selected outcome.
import { html, useMemo, useRef, useState, colour } from "../lib/ui.js";
import { figure, plural } from "../lib/format.js";
import { theme } from "../lib/theme.js";
import { Canvas, ramp, shortened, useSize } from "./canvas.js";
import { Table } from "./table.js";
import { Bars, Node } from "./common.js";

const HEAD = 96;
const MOST = 420;

const describe = ({ plugin, reasons }) => `${plugin}: ${reasons.join(", ")}`;

/** Columns: plugins that rejected or scored, in the order of the matrix. */
const pluginsOf = (matrix) => {
	const all = new Set(matrix.plugins);
	for (const { plugin, others } of matrix.refusals) [plugin, ...(others || []).map((other) => other.plugin)].forEach((name) => all.add(name));
	return [...all];
};

const highest = (matrix) => Object.fromEntries(matrix.plugins.map((plugin) => [plugin, Math.max(1, ...(matrix.scores[plugin] || []).filter(Number.isFinite))]));

/** Nodes by outcome: `{index, title, plugin, rows}`; index -1 has the feasible nodes. */
function outcomes(matrix) {
	const rows = new Map([[-1, []], ...matrix.refusals.map((_, index) => [index, []])]);
	matrix.refusal.forEach((index, row) => rows.get(index)?.push(row));
	return [...rows].filter(([, nodes]) => nodes.length).map(([index, nodes]) => ({
		index, rows: nodes, plugin: matrix.refusals[index]?.plugin, title: index < 0 ? "feasible" : matrix.refusals[index].reasons.join(", ") || "no reason given",
	}));
}

function Picture({ matrix, plugins, rows, chosen, onPick }) {
	const place = useRef(null);
	const { width } = useSize(place);
	const [here, setHere] = useState(null);
	const shown = theme.value;
	const line = Math.max(1, Math.min(22, Math.floor(MOST / rows.length)));
	const lines = Math.min(rows.length, MOST);
	const named = line >= 14;
	const left = named ? Math.min(180, width * 0.3) : 0;
	const column = Math.min(96, (width - left) / plugins.length);
	const height = HEAD + lines * line;
	const rowAt = (number) => rows[Math.floor((number * rows.length) / lines)];
	const draw = useMemo(() => (context) => {
		const heat = ramp();
		const top = highest(matrix);
		const [none, rejected, ink, faint] = ["none", "rejected", "ink", "ink2"].map(colour);
		context.font = `12px ${colour("sans")}`;
		context.textBaseline = "middle";
		context.fillStyle = faint;
		plugins.forEach((plugin, number) => {
			context.save();
			context.translate(left + number * column + column / 2, HEAD - 8);
			context.rotate(-Math.PI / 5);
			context.fillText(plugin.length > 20 ? `${plugin.slice(0, 19)}…` : plugin, 0, 0);
			context.restore();
		});
		for (let number = 0; number < lines; number += 1) {
			const row = rowAt(number);
			const refusal = matrix.refusals[matrix.refusal[row]];
			const y = HEAD + number * line;
			const gap = line > 4 ? 2 : 0;
			if (named) {
				context.fillStyle = matrix.nodes[row] === chosen ? ink : faint;
				context.fillText(shortened(context, matrix.nodes[row], left - 10), 0, y + line / 2);
			}
			plugins.forEach((plugin, place) => {
				const score = matrix.scores[plugin]?.[row];
				const rejects = refusal && (refusal.plugin === plugin || refusal.others?.some((other) => other.plugin === plugin));
				context.fillStyle = rejects ? rejected : score == null ? none : heat[Math.round((Math.max(0, score) / top[plugin]) * 0.7 * (heat.length - 1))];
				if (!rejects && score == null) context.globalAlpha = 0.35;
				context.fillRect(left + place * column, y, column - 3, line - gap);
				context.globalAlpha = 1;
			});
			if (matrix.nodes[row] === chosen && line > 2) {
				context.strokeStyle = ink;
				context.lineWidth = 1.5;
				context.strokeRect(left - 1, y - 1, column * plugins.length, line);
			}
		}
	}, [matrix, rows, width, shown, chosen]);
	const find = (event) => {
		const number = Math.floor((event.offsetY - HEAD) / line);
		return number >= 0 && number < lines ? rowAt(number) : null;
	};
	const refusal = here != null && matrix.refusals[matrix.refusal[here]];
	return html`<div class="picture" ref=${place}>
		${width > 0 && html`<${Canvas} width=${width} height=${height} draw=${draw} role="img" aria-label=${`${plural(rows.length, "node")} by ${plural(plugins.length, "plugin")}; the table has the same data`}
			onPointerMove=${(event) => setHere(find(event))} onPointerLeave=${() => setHere(null)} onClick=${(event) => { const row = find(event); if (row != null) onPick(row); }} />`}
		<p class="hint picked">${here == null ? html`<span class="scale"><span>low score<span class="ramp"></span>high score</span><span><i class="rejected"></i>rejected</span></span>`
			: html`<strong><bdi>${matrix.nodes[here]}</bdi></strong> ${refusal ? `rejected by ${describe(refusal)}` : matrix.total[here] == null ? "feasible, not scored" : `total ${figure(matrix.total[here])}`}`}</p>
	</div>`;
}

/** The outcomes with their sizes; picture and table of the selected one. */
export function Matrix({ matrix, chosen, picked, onPick }) {
	const groups = useMemo(() => outcomes(matrix), [matrix]);
	const plugins = useMemo(() => pluginsOf(matrix), [matrix]);
	const [order, setOrder] = useState(null);
	const all = useMemo(() => [...matrix.nodes.keys()], [matrix]);
	const group = groups.find(({ index }) => String(index) === picked);
	const rows = group ? group.rows : all;
	const columns = useMemo(() => [
		{ key: "node", title: "Node", width: "minmax(140px,2fr)", narrow: true, sort: (row) => matrix.nodes[row], cell: (row) => html`<${Node} name=${matrix.nodes[row]} quiet />` },
		{ key: "total", title: "Total", width: "76px", narrow: true, end: true, sort: (row) => matrix.total[row], cell: (row) => (matrix.total[row] == null ? "–" : figure(matrix.total[row])) },
		{ key: "why", title: "Rejected by", width: "minmax(150px,2fr)", narrow: true, sort: (row) => matrix.refusal[row], cell: (row) => {
			const refusal = matrix.refusals[matrix.refusal[row]];
			return refusal ? html`<span title=${describe(refusal)}>${describe(refusal)}</span>` : html`<span class="badge ok">feasible</span>`;
		} },
		...matrix.plugins.map((plugin) => ({
			key: plugin, title: html`<span title=${plugin}>${plugin}</span>`, width: "minmax(64px,1fr)", end: true, sort: (row) => matrix.scores[plugin]?.[row],
			cell: (row) => (matrix.scores[plugin]?.[row] == null ? "–" : html`<span title=${`raw ${figure(matrix.raw?.[plugin]?.[row])}`}>${figure(matrix.scores[plugin][row])}</span>`),
		})),
	], [matrix]);
	if (!matrix.nodes.length) return html`<p class="hint">No details about nodes.</p>`;
	return html`
		<${Bars} label="Outcomes of nodes" all=${matrix.nodes.length} picked=${picked} onPick=${onPick}
			items=${groups.map(({ index, title, plugin, rows: nodes }) => ({ key: String(index), size: nodes.length, tone: index < 0 ? "good" : "poor", text: html`${plugin && html`<span class="hint">${plugin}:</span> `}${title}` }))}>
			${matrix.left > 0 && html`<li class="hint">${plural(matrix.left, "more node")} not shown</li>`}<//>
		${plugins.length > 0 && html`<${Picture} matrix=${matrix} plugins=${plugins} rows=${rows} chosen=${chosen} onPick=${(row) => onPick(String(matrix.refusal[row]))} />`}
		<details open=${group != null || matrix.nodes.length <= 12}><summary>${group ? plural(rows.length, "node") : `All ${plural(rows.length, "node")}`} in a table</summary>
			<${Table} id="matrix" label="Nodes and their scores" rows=${rows} columns=${columns} order=${order} onOrder=${setOrder} chosen=${(row) => matrix.nodes[row] === chosen} /></details>`;
}
