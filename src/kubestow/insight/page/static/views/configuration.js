// Configuration: the extension points and weights of plugins.
import { html, useMemo } from "../lib/ui.js";
import { useAnswer } from "../lib/api.js";
import { when } from "../lib/data.js";
import { link, route, setOptions } from "../lib/route.js";
import { Answer } from "../parts/states.js";
import { Title } from "../parts/common.js";

/** Plugins in the order of their first extension points. */
const pluginsOf = ({ points }) => [...new Set(Object.values(points).flatMap((plugins) => plugins.map(({ name }) => name)))];

const title = (point) => point.replace(/^./, (first) => first.toUpperCase());

function Profile({ profile, chosen }) {
	const points = useMemo(() => Object.keys(profile.points).filter((point) => profile.points[point].length), [profile]);
	const plugins = useMemo(() => pluginsOf(profile), [profile]);
	return html`<section class="panel"><h2><bdi>${profile.name}</bdi> <small>${profile.percentageOfNodesToScore ? `scores ${profile.percentageOfNodesToScore} % of nodes` : ""}</small></h2>
		<div class="scroll" tabindex="0" role="region" aria-label=${`Plugins of ${profile.name}`}><table class="points"><thead><tr><th scope="col">Plugin</th>${points.map((point) => html`<th scope="col" key=${point}>${title(point)}</th>`)}</tr></thead>
		<tbody>${plugins.map((plugin) => html`<tr key=${plugin} class=${plugin === chosen ? "chosen" : ""}><th scope="row"><a href=${link("configuration", [], { plugin })}>${plugin}</a></th>${points.map((point) => {
			const entry = profile.points[point].find(({ name }) => name === plugin);
			return html`<td key=${point}>${entry ? (entry.weight != null && point === "score" ? html`<b title="weight">${entry.weight}</b>` : html`<span class="does" role="img" aria-label="yes"></span>`) : ""}</td>`;
		})}</tr>`)}</tbody></table></div></section>`;
}

export function Configuration() {
	const { plugin } = route.value.options;
	const answer = useAnswer("configuration", { run: when().run });
	return html`<${Title} hint="The current configuration. Numbers are weights.">Configuration<//>
		${plugin && html`<p class="banner past"><strong>${plugin}</strong> <a href=${link("queue", [], { plugin })}>Pods that it blocks</a> <a href=${link("decisions", [], { plugin })}>Decisions in which it rejected nodes</a> <button onClick=${() => setOptions({ plugin: null })}>Clear</button></p>`}
		<${Answer} of=${answer} what="Reading the configuration">${({ yaml, profiles, extenders = [], features = [] }) => html`
			${profiles.map((profile) => html`<${Profile} key=${profile.name} profile=${profile} chosen=${plugin} />`)}
			<div class="columns">
				${extenders.length > 0 && html`<section class="panel"><h2>Extenders</h2><ul class="list">${extenders.map((extender) => html`<li key=${extender}><code>${extender}</code></li>`)}</ul></section>`}
				${features.length > 0 && html`<section class="panel"><h2>Enabled features</h2><p class="row">${features.map((feature) => html`<span class="badge" key=${feature}>${feature}</span>`)}</p></section>`}</div>
			<details class="panel"><summary>As YAML</summary><pre tabindex="0" role="region" aria-label="Configuration as YAML">${yaml}</pre></details>`}<//>`;
}
