// The words and marks that every view uses for the same things.
import { html, cls } from "../lib/ui.js";
import { nodeLink, podLink } from "../lib/route.js";
import { splitPod } from "../lib/format.js";

export const STATES = {
  active: { title: "Active", badge: "accent", says: "ready to be tried" },
  backoff: { title: "Backoff", badge: "warn", says: "failed, and waits a little" },
  unschedulable: { title: "Unschedulable", badge: "bad", says: "fits nowhere; waits for something to change" },
  gated: { title: "Gated", badge: "", says: "held back by a scheduling gate or a plugin" },
  inFlight: { title: "In flight", badge: "ok", says: "being decided or bound" },
  waiting: { title: "Waiting on permit", badge: "accent", says: "has a node, and waits for permission" },
};
const OUTCOMES = { scheduled: ["Scheduled", "ok"], unschedulable: ["Unschedulable", "bad"], error: ["Error", "bad"] };

export const State = ({ of }) => html`<span class=${cls("badge", STATES[of]?.badge)} title=${STATES[of]?.says}>${STATES[of]?.title || of}</span>`;
export const Outcome = ({ of }) => html`<span class=${cls("badge", OUTCOMES[of]?.[1])}>${OUTCOMES[of]?.[0] || of}</span>`;

/** Names are data: text in its own direction, whatever characters they have. */
export const Name = ({ children }) => html`<bdi class="name" title=${children}>${children}</bdi>`;
export const Node = ({ name, focusable }) => html`<a href=${nodeLink(name)} tabindex=${focusable === false ? -1 : null}><${Name}>${name}<//></a>`;
export const Pod = ({ pod, focusable, options }) => {
  const [namespace, name] = splitPod(pod);
  return html`<a href=${podLink(pod, options)} title=${pod} tabindex=${focusable === false ? -1 : null}><bdi class="name"><span class="space">${namespace}/</span>${name}</bdi></a>`;
};

/** The part of a message that tells apart: without the count of nodes and what preemption says. */
export const brief = (message) => message.replace(/^\d+\/\d+ nodes are available: /, "").replace(/ ?(no new claims to deallocate, )?preemption: .*$/s, "").replace(/\.\s*$/, "") || message;
