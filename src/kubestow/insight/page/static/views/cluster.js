// Cluster: every node as a cell, with selectable colour and grouping, and a panel for the selected node.
import { html, colour, useMemo } from "../lib/ui.js";
import { useCluster } from "../lib/data.js";
import { route, setOptions } from "../lib/route.js";
import { theme } from "../lib/theme.js";
import { byName, count, percent, plural, quantity } from "../lib/format.js";
import { kinds, ramp } from "../parts/canvas.js";
import { Heatmap } from "../parts/heatmap.js";
import { Scrubber } from "../parts/scrubber.js";
import { Answer, Empty } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Name, Node, Tile, Title, tally } from "../parts/common.js";
import { NodePanel } from "./node.js";

/** The number of nodes up to which a table says more than a map. */
const FEW = 12;
const ZONE = "topology.kubernetes.io/zone";
const sum = (values) => values.reduce((total, value) => total + value, 0);
const share = (part, whole) => (whole > 0 ? part / whole : NaN);
const filled = (data, resource, row) => share(data.requested[resource][row], data.allocatable[resource][row]);
const amounts = (data, resource, row) => [data.requested, data.allocatable].map((all) => quantity(resource, all[resource][row]));
const taintWords = (taints) => taints.map(({ key, value, effect }) => `${key}${value ? `=${value}` : ""}:${effect}`).join(", ");

/** The value that determines the colour of nodes: a share from 0 to 1, or one of several kinds. */
function shading(data, by) {
	const label = by.startsWith("label:") && data.labels[by.slice(6)];
	if (label) return { title: by.slice(6), kind: (row) => label.of[row], names: label.values.map((value) => value || "label not set") };
	if (by === "taints") return { title: "taints", kind: (row) => data.taints.of[row], names: data.taints.sets.map((set) => (set.length ? taintWords(set) : "no taints")) };
	if (by === "pods") return { title: "pods", share: (row) => share(data.pods[row], data.allowedPods[row]) };
	if (by === "fragmentation") return { title: "fragmentation", share: (row) => data.fragmentation[row] };
	const resource = data.allocatable[by] ? by : "cpu";
	return { title: `${resource} requested`, share: (row) => filled(data, resource, row) };
}

/** Assigns a colour to each of the most frequent kinds, and the last colour to all others. */
function ranked(shade, rows) {
	const order = tally(rows, shade.kind);
	return { rank: new Map(order.map(([kind], place) => [kind, Math.min(place, 7)])), order };
}

const grouped = (data, key) => {
	const label = data.labels[key];
	const order = [...data.names.keys()].sort((one, other) => byName(data.names[one], data.names[other]));
	if (!label) return [{ name: "", rows: order }];
	const groups = label.values.map((value) => ({ name: value || "label not set", rows: [] }));
	for (const row of order) groups[label.of[row]].rows.push(row);
	return groups.filter(({ rows }) => rows.length).sort((one, other) => byName(one.name, other.name));
};

function Tip({ data, row, shade }) {
	const figures = data.resources.filter((resource) => data.allocatable[resource][row] > 0).slice(0, 4);
	return html`<strong><${Name}>${data.names[row]}<//></strong>
		${shade.kind && html`<span>${shade.names[shade.kind(row)]}</span>`}
		<dl class="facts">
			${figures.map((resource) => html`<dt key=${resource}>${resource}</dt><dd>${amounts(data, resource, row).join(" of ")} (${percent(filled(data, resource, row))})</dd>`)}
			<dt>pods</dt><dd>${count(data.pods[row])} of ${count(data.allowedPods[row])}</dd>
		</dl>
		${data.unschedulable[row] ? html`<span class="badge warn">cordoned</span>` : null}`;
}

function Legend({ shade, ranks, colours }) {
	if (shade.share) return html`<div class="scale"><span>${shade.title}: 0 %<span class="ramp"></span>100 %</span></div>`;
	return html`<div class="scale">${ranks.order.slice(0, 7).map(([kind, size], place) => html`<span key=${kind}><i style=${{ background: colours[place] }}></i><bdi>${shade.names[kind]}</bdi> (${count(size)})</span>`)}
		${ranks.order.length > 7 && html`<span><i style=${{ background: colours[7] }}></i>${plural(ranks.order.length - 7, "other kind")}</span>`}</div>`;
}

function NodeMap({ data, shade, by, group }) {
	const colours = useMemo(() => (shade.share ? ramp() : kinds()), [theme.value, by]);
	const empty = useMemo(() => colour("none"), [theme.value]);
	const ranks = useMemo(() => (shade.kind ? ranked(shade, [...data.names.keys()]) : null), [data, by]);
	const groups = useMemo(() => grouped(data, group), [data.layout, data.names, group]);
	const paint = useMemo(() => (row) => {
		if (shade.kind) return colours[ranks.rank.get(shade.kind(row))];
		const value = shade.share(row);
		return Number.isFinite(value) ? colours[Math.round(Math.min(1, Math.max(0, value)) * (colours.length - 1))] : empty;
	}, [data, by, colours, empty]);
	const mark = useMemo(() => (row) => data.unschedulable[row], [data]);
	const describe = (row) => ({
		view: html`<${Tip} data=${data} row=${row} shade=${shade} />`,
		text: `${data.names[row]}: ${shade.kind ? shade.names[shade.kind(row)] : `${shade.title} ${percent(shade.share(row))}`}, ${plural(data.pods[row], "pod")}${data.unschedulable[row] ? ", cordoned" : ""}`,
	});
	return html`<div class="panel map"><${Legend} shade=${shade} ranks=${ranks} colours=${colours} />
		<${Heatmap} groups=${groups} paint=${paint} mark=${mark} describe=${describe} version=${data}
			label=${`${plural(data.names.length, "node")} by ${shade.title}. Arrow keys move between nodes, Enter opens a node.`}
			onPick=${(row) => setOptions({ node: data.names[row] })} /></div>`;
}

function Nodes({ data, options }) {
	const rows = useMemo(() => [...data.names.keys()], [data.names]);
	const columns = useMemo(() => [
		{ key: "name", title: "Node", width: "minmax(160px,2fr)", narrow: true, sort: (row) => data.names[row], cell: (row) => html`<${Node} name=${data.names[row]} quiet />` },
		{ key: "pods", title: "Pods", width: "80px", small: "64px", narrow: true, end: true, sort: (row) => data.pods[row], cell: (row) => count(data.pods[row]) },
		...data.resources.slice(0, 4).map((resource) => ({
			key: resource, title: resource, width: "minmax(110px,1fr)", narrow: resource === "cpu", end: true,
			sort: (row) => filled(data, resource, row) || 0,
			cell: (row) => amounts(data, resource, row).join(" / "),
		})),
		{ key: "taints", title: "Taints", width: "minmax(120px,1.5fr)", sort: (row) => data.taints.of[row], cell: (row) => taintWords(data.taints.sets[data.taints.of[row]]) || "–" },
	], [data]);
	return html`<${Table} id="nodes" fill label="Nodes" rows=${rows} columns=${columns} order=${options.sort || "name"} onOrder=${(sort) => setOptions({ sort })}
		chosen=${(row) => data.names[row] === options.node} onOpen=${(row) => setOptions({ node: data.names[row] })} />`;
}

const Tiles = ({ data }) => html`<dl class="tiles">
	<${Tile} name="Nodes">${count(data.names.length)}<//>
	<${Tile} name="Pods">${count(sum(data.pods))}<//>
	${data.resources.filter((resource) => sum(data.requested[resource]) > 0).slice(0, 3).map((resource) => {
		const [used, all] = [sum(data.requested[resource]), sum(data.allocatable[resource])];
		return html`<${Tile} key=${resource} name="${resource} requested">${percent(used / all)} <small>${quantity(resource, used)} of ${quantity(resource, all)}</small><//>`;
	})}
</dl>`;

export function Cluster() {
	const answer = useCluster();
	const { options } = route.value;
	return html`<${Answer} of=${answer} what="Reading the cluster">${(data) => {
		const keys = Object.keys(data.labels);
		const [by, group] = [options.colour || "cpu", options.group ?? (keys.includes(ZONE) ? ZONE : "")];
		const shade = shading(data, by);
		const asTable = options.show ? options.show === "table" : data.names.length <= FEW;
		return html`
			<${Title} controls=${html`<div class="row">
					${!asTable && html`<label class="field">Colour by <select value=${by} onChange=${(event) => setOptions({ colour: event.target.value })}>
						${[...data.resources, "pods", "fragmentation", "taints"].map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
						${keys.length > 0 && html`<optgroup label="label">${keys.map((key) => html`<option key=${key} value=${`label:${key}`}>${key}</option>`)}</optgroup>`}</select></label>
					<label class="field">Group by <select value=${group === "none" ? "" : group} onChange=${(event) => setOptions({ group: event.target.value || "none" })}>
						<option value="">nothing</option>${keys.map((key) => html`<option key=${key} value=${key}>${key}</option>`)}</select></label>`}
					<div class="segments" role="group" aria-label="Show as">
						<button aria-pressed=${!asTable} onClick=${() => setOptions({ show: "map" })}>Map</button>
						<button aria-pressed=${asTable} onClick=${() => setOptions({ show: "table" })}>Table</button></div>
				</div>`}>Cluster<//>
			${data.names.length ? html`
				<${Tiles} data=${data} />
				<div class=${options.node ? "beside open" : "beside"}>
					${asTable ? html`<${Nodes} data=${data} options=${options} />` : html`<${NodeMap} data=${data} shade=${shade} by=${by} group=${group} />`}
					${options.node && html`<${NodePanel} key=${options.node} name=${options.node} />`}
				</div>
				<${Scrubber} />`
			: html`<${Empty} title="No nodes yet">Pods cannot be scheduled without nodes.<//>`}`;
	}}<//>`;
}
