// Selects the moment that is shown; the background has the number of pending pods.
import { html, useEffect, useMemo, useRef, useState, colour } from "../lib/ui.js";
import { useAnswer } from "../lib/api.js";
import { about, seconds } from "../lib/data.js";
import { moment, route, setOptions } from "../lib/route.js";
import { clock } from "../lib/format.js";
import { Canvas, useSize } from "./canvas.js";

/** Figures over the whole history; the longer it is, the less often they are requested. */
export function useTimes(points = 300, every = 5) {
	const pause = every * 2 ** Math.floor(Math.log2(Math.max(1, (seconds.value - about.value.from) / points / every)));
	const again = about.value.live ? Math.floor(seconds.value / pause) : 0;
	return useAnswer("times", { points, run: route.value.options.run }, again);
}

export const pendingOf = ({ pending, time }) => time.map((_, point) => Object.values(pending).reduce((sum, values) => sum + (values[point] || 0), 0));

export function Scrubber() {
	const track = useRef(null);
	const { width, height } = useSize(track);
	const { data } = useTimes();
	const [moving, setMoving] = useState(null);
	useEffect(() => {
		if (moving == null) return;
		const timer = setTimeout(() => {
			setOptions({ at: moving >= data.to ? null : Math.ceil(moving * 100) / 100 });
			setMoving(null);
		}, 90);
		return () => clearTimeout(timer);
	}, [moving]);
	const draw = useMemo(() => (context) => {
		if (!data?.time.length) return;
		const values = pendingOf(data);
		const top = Math.max(1, ...values);
		const span = Math.max(1, data.to - data.from);
		context.beginPath();
		context.moveTo(0, height);
		values.forEach((value, point) => context.lineTo(((data.time[point] - data.from) / span) * width, height - 3 - (value / top) * (height - 6)));
		context.lineTo(width, height);
		context.fillStyle = colour("accent-soft");
		context.fill();
	}, [data, width, height]);
	const none = !data || data.to - data.from < 1;
	const here = moving ?? moment() ?? data?.to;
	return html`<div class="scrubber">
		<span>${clock(none ? null : data.from)}</span>
		<div class="track" ref=${track}>
			<${Canvas} width=${width} height=${height} draw=${draw} aria-hidden="true" />
			<input type="range" aria-label="Displayed moment" disabled=${none} min=${data?.from ?? 0} max=${data?.to ?? 1} step=${none ? 1 : Math.max(0.01, (data.to - data.from) / 500)} value=${here ?? 1}
				aria-valuetext=${moment() == null ? "now" : clock(here)} onInput=${(event) => setMoving(Number(event.target.value))} />
		</div>
		<span>${moment() != null || moving != null ? clock(here) : about.value.live ? "now" : clock(data?.to)}</span>
	</div>`;
}
