// Compare: two runs, or two configurations: the pods that moved, grouped by reason.
import { html, useState } from "../lib/ui.js";
import { useAnswer } from "../lib/api.js";
import { about } from "../lib/data.js";
import { route, setOptions } from "../lib/route.js";
import { count, figure, percent, plural } from "../lib/format.js";
import { Answer, Empty } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { YamlForm } from "../parts/yaml.js";
import { Figures, Node, POD_COLUMN, Tile, Title, largest } from "../parts/common.js";

const KINDS = { score: ["score", "accent"], refused: ["rejected", "bad"], placed: ["only in B", "ok"], unplaced: ["only in A", "warn"], tie: ["tie", ""], unknown: ["unknown", ""] };

const nodeOr = (name, message) => (name ? html`<${Node} name=${name} quiet />` : html`<span class="hint" title=${message}>no node</span>`);
const COLUMNS = [
	POD_COLUMN,
	{ key: "a", title: "A", width: "minmax(110px,1fr)", narrow: true, sort: (row) => row.a || "", cell: (row) => nodeOr(row.a, row.message) },
	{ key: "b", title: "B", width: "minmax(110px,1fr)", narrow: true, sort: (row) => row.b || "", cell: (row) => nodeOr(row.b, row.message) },
	{ key: "by", title: "Score changed by", width: "minmax(160px,2fr)", cell: ({ by, message }) => {
		const text = largest(Object.entries(by || {})).map(([plugin, points]) => `${plugin} ${points > 0 ? "+" : ""}${figure(points)}`).join(", ") || message || "–";
		return html`<span title=${text}>${text}</span>`;
	} },
];

function Difference({ result }) {
	const { a, b, pods, moved, figures = [], groups } = result;
	const { options } = route.value;
	return html`
		<dl class="tiles"><${Tile} name="Pods compared">${count(pods)}<//>
			<${Tile} name="Moved">${count(moved)} <small>${pods ? percent(moved / pods) : ""}</small><//>
			<${Tile} name="A"><bdi>${a}</bdi><//><${Tile} name="B"><bdi>${b}</bdi><//></dl>
		${figures.length > 0 && html`<section class="panel"><h2>Figures</h2><${Figures} label="Compared figures" columns=${["Figure", "A", "B", "Difference"]}
			rows=${figures.map(({ name, a: one, b: other }) => [name, figure(one), figure(other), one == null || other == null ? "–" : `${other > one ? "+" : ""}${figure(other - one)}`])} /></section>`}
		${groups.length === 0 ? html`<${Empty} title="Nothing moved" icon="compare">Every pod has the same result with both.<//>`
		: groups.map(({ why, kind, count: size, pods: some }, number) => html`<section class="panel group" key=${why + kind}><details open=${options.why != null ? options.why === String(number) : number === 0} onToggle=${(event) => event.target.open && setOptions({ why: number })}>
			<summary><span class=${`badge ${KINDS[kind]?.[1] ?? ""}`}>${KINDS[kind]?.[0] || kind}</span><b>${count(size)}</b><span class="grow">${why}</span></summary>
			<${Table} id=${`moved-${number}`} label=${why} rows=${some} columns=${COLUMNS} />${some.length < size && html`<p class="hint">${plural(size - some.length, "more pod")} not listed.</p>`}</details></section>`)}`;
}

function Another({ current }) {
	const [text, setText] = useState(current);
	return html`<${YamlForm} place="compare" parameters=${{ pods: 100 }} text=${text} onText=${setText} label="Another configuration" verb="Compare" rows="16"
		hint="Edit the configuration to see which pending or recently scheduled pods would get another node. Pods are evaluated in a copy of the cluster.">${(result) => html`<${Difference} result=${result} />`}<//>`;
}

export function Compare() {
	const { runs, can } = about.value;
	const two = runs.length > 1;
	const answer = useAnswer(two ? "compare" : can.compare ? "configuration" : null);
	return html`<${Title} hint=${two ? "The pods that moved between two runs, and why." : "The pods that would move with another configuration, and why."}>Compare<//>
		${two || can.compare ? html`<${Answer} of=${answer} what="Comparing">${(data) => (two ? html`<${Difference} result=${data} />` : html`<${Another} current=${data.yaml} />`)}<//>`
			: html`<${Empty} title="Nothing to compare" icon="compare">Start <code>kubestow view</code> with two results to compare them here.<//>`}`;
}
