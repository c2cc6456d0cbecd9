// Nodes as cells of one canvas, in blocks by group, with the largest cells that fit.
import { html, useMemo, useRef, useState, colour } from "../lib/ui.js";
import { count } from "../lib/format.js";
import { Canvas, shortened, stroke, useSize } from "./canvas.js";

const HEAD = 20;
const GAP = 12;
const LABEL = 84;

/** Arranges blocks in lines, for a cell size and a shape of blocks: `{cell, height, boxes: [{x, y, columns, wide}]}`. */
function shelve(sizes, width, cell, shape) {
	const alone = sizes.length === 1;
	const most = Math.max(1, Math.floor(width / cell));
	let [x, y, shelf] = [0, 0, 0];
	const boxes = sizes.map((size) => {
		const columns = alone ? most : Math.min(most, Math.max(Math.ceil(Math.sqrt(size * shape)), Math.ceil(LABEL / cell)));
		const [wide, high] = [columns * cell, Math.ceil(size / columns) * cell + (alone ? 0 : HEAD) + GAP];
		if (x && x + wide > width) [x, y, shelf] = [0, y + shelf, 0];
		const box = { x, y: y + (alone ? 0 : HEAD), columns, wide };
		x += wide + GAP;
		shelf = Math.max(shelf, high);
		return box;
	});
	return { cell, boxes, height: y + shelf };
}

/** Arranges blocks with these numbers of cells, with the largest cells that fit. */
function arrange(sizes, width, height) {
	let plan;
	for (let cell = 60; cell >= 4; cell -= cell > 16 ? 2 : 1) {
		for (const shape of [2, 1.4, 1, 0.7, 3, 5]) {
			plan = shelve(sizes, width, cell, shape);
			if (plan.height <= height) return plan;
		}
	}
	return plan;
}

/** `groups` are `{name, rows}`; `paint(row)` returns a colour; `describe(row)` the tooltip of a node: `{view, text}`. */
export function Heatmap({ groups, paint, mark, describe, onPick, label, version }) {
	const place = useRef(null);
	const { width, height } = useSize(place);
	const [here, setHere] = useState(null);
	const sizes = groups.map((group) => group.rows.length).join();
	const plan = useMemo(() => (width ? arrange(groups.map((group) => group.rows.length), width, height) : null), [sizes, width, height]);

	const draw = useMemo(() => (context) => {
		const { cell, boxes } = plan;
		const inset = cell > 20 ? 3 : cell > 7 ? 1.5 : 0.5;
		const side = cell - inset;
		const [ink, faint] = [colour("ink"), colour("ink2")];
		context.font = `600 12px ${colour("sans")}`;
		context.textBaseline = "middle";
		groups.forEach((group, number) => {
			const { x, y, columns, wide } = boxes[number];
			if (groups.length > 1) {
				const total = ` ${count(group.rows.length)}`;
				const name = shortened(context, group.name, wide - context.measureText(total).width - 2);
				context.fillStyle = ink;
				context.fillText(name, x, y - HEAD / 2);
				context.fillStyle = faint;
				context.fillText(total, x + context.measureText(name).width, y - HEAD / 2);
			}
			group.rows.forEach((row, index) => {
				const [left, top] = [x + (index % columns) * cell, y + Math.floor(index / columns) * cell];
				context.fillStyle = paint(row);
				if (cell > 9) {
					context.beginPath();
					context.roundRect(left, top, side, side, Math.min(5, cell / 6));
					context.fill();
				} else context.fillRect(left, top, side, side);
				if (mark(row) && cell > 6) stroke(context, faint, 1.5, [left + side * 0.3, top + side * 0.7], [left + side * 0.7, top + side * 0.3]);
				if (here && row === here.row) {
					context.strokeStyle = ink;
					context.lineWidth = 2;
					context.strokeRect(left - 1, top - 1, side + 2, side + 2);
				}
			});
		});
	}, [plan, groups, paint, mark, here?.row, version]);

	const cellAt = (px, py) => {
		for (let number = 0; number < groups.length; number += 1) {
			const { x, y, columns } = plan.boxes[number];
			const [column, line] = [Math.floor((px - x) / plan.cell), Math.floor((py - y) / plan.cell)];
			const index = line * columns + column;
			if (column >= 0 && column < columns && line >= 0 && index < groups[number].rows.length) return { group: number, index };
		}
		return null;
	};
	const show = ({ group, index }, keyboard) => {
		const { x, y, columns } = plan.boxes[group];
		setHere({ group, index, row: groups[group].rows[index], keyboard, x: x + ((index % columns) + 1) * plan.cell, y: y + (Math.floor(index / columns) + 1) * plan.cell });
	};
	const onMove = (event) => {
		const found = plan && cellAt(event.offsetX, event.offsetY);
		if (!found) setHere(null);
		else if (!here || groups[found.group].rows[found.index] !== here.row) show(found);
	};
	const onKey = (event) => {
		if (!plan || !groups.length) return;
		if (event.key === "Enter" && here) return onPick(here.row);
		if (event.key === "Escape") return setHere(null);
		const { group, index } = here || { group: 0, index: -1 };
		const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: plan.boxes[group].columns, ArrowUp: -plan.boxes[group].columns }[event.key];
		if (event.key === "Home") show({ group: 0, index: 0 }, true);
		else if (event.key === "End") show({ group: groups.length - 1, index: groups.at(-1).rows.length - 1 }, true);
		else if (!step) return;
		else {
			let [next, to] = [group, index + step];
			if (to < 0) [next, to] = group ? [group - 1, groups[group - 1].rows.length - 1] : [0, 0];
			else if (to >= groups[group].rows.length) [next, to] = group < groups.length - 1 ? [group + 1, 0] : [group, groups[group].rows.length - 1];
			show({ group: next, index: to }, true);
		}
		event.preventDefault();
	};

	const tip = here && describe(here.row);
	return html`<div class="heatmap" ref=${place}>
		${plan && html`<${Canvas} width=${width} height=${Math.max(height, plan.height)} draw=${draw} tabindex="0" role="application"
			aria-roledescription="heat map" aria-label=${label} onPointerMove=${onMove} onPointerLeave=${() => setHere(null)}
			onBlur=${() => setHere(null)} onKeyDown=${onKey} onClick=${(event) => {
				const found = cellAt(event.offsetX, event.offsetY);
				if (found) onPick(groups[found.group].rows[found.index]);
			}} />`}
		${tip && html`<div class="tip" style=${{ left: `${Math.min(here.x + 4, Math.max(0, width - 250))}px`, top: `${here.y + 150 > height && here.y > 190 ? here.y - 180 : here.y + 4}px` }}>${tip.view}</div>`}
		<div class="unseen" aria-live="polite">${here?.keyboard && tip ? tip.text : ""}</div>
	</div>`;
}
