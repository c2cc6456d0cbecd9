// Lines over time on a canvas, with the figures as text. All charts share one cursor.
import { html, signal, useMemo, useRef, colour } from "../lib/ui.js";
import { clock } from "../lib/format.js";
import { Canvas, stroke, useSize } from "./canvas.js";

const cursor = signal(null);
const LEFT = 68;
const FOOT = 18;
const height = 132;

function ticks(top) {
	if (!(top > 0)) return [0, 1];
	const rough = top / 3;
	const power = 10 ** Math.floor(Math.log10(rough));
	const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) * power;
	return Array.from({ length: Math.ceil(top / step - 1e-9) + 1 }, (_, number) => number * step);
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800];

function nearest(times, moment) {
	let [low, high] = [0, times.length - 1];
	while (low < high) {
		const middle = (low + high) >> 1;
		if (times[middle] < moment) low = middle + 1;
		else high = middle;
	}
	return low > 0 && moment - times[low - 1] < times[low] - moment ? low - 1 : low;
}

/** `lines`: `{name, values, colour}`; `at`: the selected moment; `onPick(moment)`. */
export function Chart({ title, times, lines, format, at, onPick }) {
	const place = useRef(null);
	const { width } = useSize(place);
	const [from, to] = [times[0], times.at(-1)];
	const span = Math.max(to - from, 1);
	const x = (moment) => LEFT + ((moment - from) / span) * (width - LEFT - 6);
	const index = times.length ? (cursor.value != null ? nearest(times, cursor.value) : at != null ? nearest(times, at) : times.length - 1) : -1;

	const draw = useMemo(() => (context) => {
		let top = 0;
		for (const line of lines) for (const value of line.values) if (value > top) top = value;
		const marks = ticks(top);
		top = marks.at(-1);
		const y = (value) => 6 + (1 - value / top) * (height - FOOT - 8);
		context.font = `11px ${colour("sans")}`;
		context.textBaseline = "middle";
		for (const mark of marks) {
			const level = Math.round(y(mark)) + 0.5;
			stroke(context, colour("line"), 1, [LEFT, level], [width - 6, level]);
			context.fillStyle = colour("ink2");
			context.textAlign = "right";
			context.fillText(format(mark), LEFT - 8, y(mark));
		}
		const step = STEPS.find((seconds) => (seconds / span) * width > (span < 43200 ? 90 : 150)) || span;
		context.textAlign = "center";
		for (let moment = Math.ceil(from / step) * step; moment <= to; moment += step) {
			if (x(moment) > LEFT + 20 && x(moment) < width - 26) context.fillText(clock(moment), x(moment), height - FOOT / 2 + 2);
		}
		lines.forEach((line) => {
			context.strokeStyle = line.colour;
			context.lineWidth = 1.75;
			context.lineJoin = context.lineCap = "round";
			context.beginPath();
			let drawing = false;
			line.values.forEach((value, point) => {
				if (!Number.isFinite(value)) drawing = false;
				else if (drawing) context.lineTo(x(times[point]), y(value));
				else {
					// A point without neighbours is a dot.
					context.moveTo(x(times[point]), y(value));
					context.arc(x(times[point]), y(value), 1, 0, 7);
					drawing = true;
				}
			});
			context.stroke();
			if (lines.length === 1) {
				context.lineTo(x(to), y(0));
				context.lineTo(x(from), y(0));
				context.globalAlpha = 0.1;
				context.fillStyle = line.colour;
				context.fill();
				context.globalAlpha = 1;
			}
		});
		const line = (moment, style, dash) => {
			const here = Math.round(x(moment)) + 0.5;
			context.setLineDash(dash);
			stroke(context, style, 1, [here, 2], [here, height - FOOT]);
			context.setLineDash([]);
		};
		if (at != null) line(at, colour("accent"), []);
		if (cursor.value != null && index >= 0) line(times[index], colour("ink2"), [3, 3]);
	}, [times, lines, width, at, cursor.value]);

	const momentAt = (event) => Math.min(to, Math.max(from, from + ((event.offsetX - LEFT) / Math.max(1, width - LEFT - 6)) * span));
	const text = lines.map((line) => `${line.name} ${format(line.values[index])}`).join(", ");
	return html`<section class="panel chart">
		<h3>${title}</h3>
		<dl class="legend">${lines.map((line) => html`<div key=${line.name}><dt><i style=${{ background: line.colour }}></i>${line.name}</dt><dd>${format(line.values[index])}</dd></div>`)}</dl>
		<div class="plot" ref=${place}>
			${width > 0 && times.length > 0 && html`<${Canvas} width=${width} height=${height} draw=${draw} role="img" aria-label=${`${title}: ${text}`}
				onPointerMove=${(event) => (cursor.value = momentAt(event))} onPointerLeave=${() => (cursor.value = null)}
				onClick=${(event) => onPick?.(momentAt(event))} />`}
		</div>
	</section>`;
}
