// Compare: two runs, or the configuration in force with another one: what moved, grouped by why.
import { html, useState } from "../lib/ui.js";
import { useAnswer } from "../lib/api.js";
import { about } from "../lib/data.js";
import { route, setOptions } from "../lib/route.js";
import { count, figure, percent, plural } from "../lib/format.js";
import { Answer, Empty } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { YamlForm } from "../parts/yaml.js";
import { Figures, Node, POD_COLUMN, Tile, Title, largest } from "../parts/words.js";

const KINDS = { score: ["score", "accent"], refused: ["refused", "bad"], placed: ["only B places", "ok"], unplaced: ["only A places", "warn"], tie: ["tie", ""], unknown: ["unknown", ""] };

const nodeOr = (name, message) => (name ? html`<${Node} name=${name} quiet />` : html`<span class="hint" title=${message}>nowhere</span>`);
const COLUMNS = [
	POD_COLUMN,
	{ key: "a", title: "A", width: "minmax(110px,1fr)", narrow: true, sort: (row) => row.a || "", cell: (row) => nodeOr(row.a, row.message) },
	{ key: "b", title: "B", width: "minmax(110px,1fr)", narrow: true, sort: (row) => row.b || "", cell: (row) => nodeOr(row.b, row.message) },
	{ key: "by", title: "Score changed by", width: "minmax(160px,2fr)", cell: ({ by, message }) => {
		const words = largest(Object.entries(by || {})).map(([plugin, points]) => `${plugin} ${points > 0 ? "+" : ""}${figure(points)}`).join(", ") || message || "–";
		return html`<span title=${words}>${words}</span>`;
	} },
];

function Difference({ result }) {
	const { a, b, pods, moved, figures = [], groups } = result;
	const { options } = route.value;
	return html`
		<dl class="tiles"><${Tile} name="Pods compared">${count(pods)}<//>
			<${Tile} name="Moved">${count(moved)} <small>${pods ? percent(moved / pods) : ""}</small><//>
			<${Tile} name="A"><bdi>${a}</bdi><//><${Tile} name="B"><bdi>${b}</bdi><//></dl>
		${figures.length > 0 && html`<section class="panel"><h2>Side by side</h2><${Figures} label="Figures side by side" columns=${["Figure", "A", "B", "Difference"]}
			rows=${figures.map(({ name, a: one, b: other }) => [name, figure(one), figure(other), one == null || other == null ? "–" : `${other > one ? "+" : ""}${figure(other - one)}`])} /></section>`}
		${groups.length === 0 ? html`<${Empty} title="Nothing moved" icon="compare">Both put every pod in the same place.<//>`
		: groups.map(({ why, kind, count: size, pods: some }, number) => html`<section class="panel group" key=${why + kind}><details open=${options.why != null ? options.why === String(number) : number === 0} onToggle=${(event) => event.target.open && setOptions({ why: number })}>
			<summary><span class=${`badge ${KINDS[kind]?.[1] ?? ""}`}>${KINDS[kind]?.[0] || kind}</span><b>${count(size)}</b><span class="grow">${why}</span></summary>
			<${Table} id=${`moved-${number}`} label=${why} rows=${some} columns=${COLUMNS} />${some.length < size && html`<p class="hint">${plural(size - some.length, "more pod")} not listed.</p>`}</details></section>`)}`;
}

function Another({ force }) {
	const [text, setText] = useState(force);
	return html`<${YamlForm} place="compare" parameters=${{ pods: 100 }} text=${text} onText=${setText} label="Another configuration" verb="Compare" rows="16"
		hint="Change it, and see which of the pods that wait or were placed last would go elsewhere. Each is tried under both; nothing is changed.">${(result) => html`<${Difference} result=${result} />`}<//>`;
}

export function Compare() {
	const { runs, can } = about.value;
	const two = runs.length > 1;
	const answer = useAnswer(two ? "compare" : can.compare ? "configuration" : null);
	return html`<${Title} says=${two ? "Two runs: what moved, and why." : "Two configurations: what would move, and why."}>Compare<//>
		${two || can.compare ? html`<${Answer} of=${answer} what="Comparing">${(data) => (two ? html`<${Difference} result=${data} />` : html`<${Another} force=${data.yaml} />`)}<//>`
			: html`<${Empty} title="Nothing to compare" icon="compare">Give <code>kubestow view</code> two results, and they are shown side by side here.<//>`}`;
}
