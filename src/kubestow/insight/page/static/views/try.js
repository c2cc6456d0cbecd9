// Try a pod: a dry run of pods that do not exist.
import { html, useState } from "../lib/ui.js";
import { about } from "../lib/data.js";
import { Body, InTheWay, WouldFit } from "../parts/decision.js";
import { Empty } from "../parts/states.js";
import { YamlForm } from "../parts/yaml.js";
import { Name, Node, Outcome, Title } from "../parts/common.js";

const EXAMPLE = `apiVersion: v1
kind: Pod
metadata:
  name: example
spec:
  containers:
  - name: app
    image: nginx
    resources:
      requests:
        cpu: 500m
        memory: 256Mi
`;
const KEY = "kubestow-try";

const Tried = ({ item }) => {
	const { decision, matrix, runnerUp, wouldFitIf, notes = [] } = item;
	return html`<section class="stack" aria-label=${decision.pod}>
		<div><h2><${Name}>${decision.pod}<//></h2><p class="row"><${Outcome} of=${decision.outcome} />${decision.chosen ? html`<span>would run on <${Node} name=${decision.chosen} /></span>` : html`<span>fits on no node</span>`}</p></div>
		${decision.message && html`<p class="notice bad">${decision.message}</p>`}
		${!decision.chosen && html`<${InTheWay} causes=${item.causes} /><${WouldFit} changes=${wouldFitIf || []} stuck together=${item.together} />`}
		<${Body} decision=${decision} matrix=${matrix} runnerUp=${runnerUp} dry />
		${notes.map((note) => html`<p class="hint" key=${note}>${note}</p>`)}</section>`;
};

export function Try() {
	const [text, setText] = useState(sessionStorage.getItem(KEY) || EXAMPLE);
	const { can, cannot, live } = about.value;
	if (!can.try) return html`<${Title}>Try a pod<//><${Empty} title="Dry runs are not possible" icon="try">${cannot}<//>`;
	return html`<${Title} hint=${`A dry run in a copy of the cluster${live ? "" : " at its end"}. Nothing is created.`}>Try a pod<//>
		<${YamlForm} place="try" text=${text} label="Pods as YAML or JSON" verb="Try" rows="14" onText=${(now) => {
			setText(now);
			sessionStorage.setItem(KEY, now);
		}}>${({ items }) => items.map((item, number) => html`<${Tried} key=${number} item=${item} />`)}<//>`;
}
