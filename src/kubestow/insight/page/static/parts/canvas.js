// A canvas with the resolution of the screen, and its colours.
import { html, useEffect, useLayoutEffect, useRef, useState, colour } from "../lib/ui.js";
import { theme } from "../lib/theme.js";

/** The size of an element, kept up to date. */
export function useSize(ref) {
	const [size, setSize] = useState({ width: 0, height: 0 });
	useLayoutEffect(() => {
		const measure = () => {
			const { width, height } = ref.current.getBoundingClientRect();
			setSize((was) => (was.width === width && was.height === height ? was : { width, height }));
		};
		measure();
		const observer = new ResizeObserver(measure);
		observer.observe(ref.current);
		return () => observer.disconnect();
	}, []);
	return size;
}

/** `draw(context, width, height)` paints in the next frame; other properties are passed to the canvas. */
export function Canvas({ width, height, draw, ...others }) {
	const ref = useRef(null);
	const shown = theme.value;
	useEffect(() => {
		const frame = requestAnimationFrame(() => {
			const scale = devicePixelRatio || 1;
			const canvas = ref.current;
			if (!canvas) return;
			const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
			if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
			const context = canvas.getContext("2d");
			context.setTransform(scale, 0, 0, scale, 0, 0);
			context.clearRect(0, 0, width, height);
			draw(context, width, height);
		});
		return () => cancelAnimationFrame(frame);
	}, [width, height, draw, shown]);
	return html`<canvas ref=${ref} style=${{ width: `${width}px`, height: `${height}px` }} ...${others} />`;
}

/** A straight line from one point to another. */
export function stroke(context, style, width, from, to) {
	context.strokeStyle = style;
	context.lineWidth = width;
	context.beginPath();
	context.moveTo(...from);
	context.lineTo(...to);
	context.stroke();
}

/** Shortens a text to a width. */
export function shortened(context, text, width) {
	while (text.length > 1 && context.measureText(text).width > width) text = `${text.slice(0, -2)}…`;
	return text;
}

const channels = (hex) => [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16));

/** Colours from empty to full, in as many steps as can be distinguished. */
export function ramp() {
	const steps = 48;
	const stops = [0, 1, 2, 3, 4].map((number) => channels(colour(`heat${number}`)));
	return Array.from({ length: steps }, (_, step) => {
		const place = (step / (steps - 1)) * (stops.length - 1);
		const low = Math.min(Math.floor(place), stops.length - 2);
		const mixed = stops[low].map((value, channel) => Math.round(value + (stops[low + 1][channel] - value) * (place - low)));
		return `rgb(${mixed.join()})`;
	});
}

/** Colours of kinds without an order: the eighth is for all other kinds. */
export const kinds = () => Array.from({ length: 8 }, (_, number) => colour(`c${number}`));
