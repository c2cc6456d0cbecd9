// A table of any length: only visible rows are in the document. Arrow keys move, Enter opens.
import { html, cls, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib/ui.js";
import { byName } from "../lib/format.js";
import { useSize } from "./canvas.js";

const ROW = 36;

/** Rows sorted by a column of `{key, sort}`; `-key` is descending. */
function sorted(rows, columns, order) {
	const down = order?.startsWith("-");
	const column = columns.find(({ key }) => key === (down ? order.slice(1) : order));
	if (!column?.sort) return rows;
	const values = new Map(rows.map((row) => [row, column.sort === true ? row[column.key] : column.sort(row)]));
	const compare = (one, other) => {
		const [a, b] = [values.get(one), values.get(other)];
		if (a == null || b == null) return (a == null) - (b == null);
		const less = typeof a === "string" ? byName(a, b) : a - b;
		return down ? -less : less;
	};
	return rows.toSorted(compare);
}

/** `columns`: `{key, title, width, cell(row), sort(row), end, narrow}`; `sort: true` sorts by the row's property; columns without `narrow` are hidden on a phone. */
export function Table({ rows, columns, id, order, onOrder, onOpen, chosen, label, fill }) {
	const scroller = useRef(null);
	const { width, height } = useSize(scroller);
	const [top, setTop] = useState(0);
	const [active, setActive] = useState(-1);
	const slim = width > 0 && width < 720;
	const shown = useMemo(() => (slim ? columns.filter((column) => column.narrow) : columns), [columns, slim]);
	const lines = useMemo(() => sorted(rows, columns, order), [rows, columns, order]);
	const places = Math.ceil(height / ROW) + 12;
	const first = Math.max(0, Math.min(lines.length - places, Math.floor(top / ROW) - 6));
	const last = Math.min(lines.length, first + places);
	const template = { gridTemplateColumns: shown.map((column) => (slim && column.small) || column.width || "1fr").join(" ") };

	useEffect(() => setActive((was) => Math.min(was, lines.length - 1)), [lines.length]);
	useLayoutEffect(() => {
		const element = scroller.current;
		if (active < 0) return;
		if (active * ROW < element.scrollTop) element.scrollTop = active * ROW;
		const bottom = (active + 1) * ROW + element.firstElementChild.offsetHeight - element.clientHeight;
		if (bottom > element.scrollTop) element.scrollTop = bottom;
	}, [active]);

	const onKey = (event) => {
		if (event.target !== scroller.current) return;
		const page = Math.max(1, Math.floor(height / ROW) - 2);
		const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: lines.length - 1 }[event.key];
		if (to != null) setActive(Math.max(0, Math.min(lines.length - 1, to)));
		else if (event.key === "Enter" && active >= 0) onOpen?.(lines[active]);
		else return;
		event.preventDefault();
	};
	const name = `${id}-row`;
	return html`<div class=${cls("table", fill && "fill")} ref=${scroller} tabindex="0" role="grid" aria-label=${label} aria-rowcount=${lines.length + 1}
			aria-activedescendant=${active >= first && active < last ? `${name}${active}` : null}
			onScroll=${(event) => setTop(event.currentTarget.scrollTop)} onKeyDown=${onKey}>
		<div class="line head" role="row" aria-rowindex="1" style=${template}>
			${shown.map((column) => {
				const by = order === column.key ? "ascending" : order === `-${column.key}` ? "descending" : null;
				return html`<div role="columnheader" key=${column.key} class=${cls(column.end && "end")} aria-sort=${column.sort ? by || "none" : null}>
					${column.sort && onOrder
						? html`<button onClick=${() => onOrder(by === "ascending" ? `-${column.key}` : column.key)}>${column.title}<span aria-hidden="true">${by === "ascending" ? " ↑" : by ? " ↓" : ""}</span></button>`
						: column.title}
				</div>`;
			})}
		</div>
		<div class="lines" role="rowgroup" style=${{ height: `${lines.length * ROW}px` }}>
			${lines.slice(first, last).map((row, offset) => {
				const number = first + offset;
				return html`<div class=${cls("line", number === active && "active", chosen?.(row) && "chosen", onOpen && "opens")} role="row" id=${`${name}${number}`} key=${number % places}
						aria-rowindex=${number + 2} style=${{ ...template, top: `${number * ROW}px` }} onClick=${onOpen && ((event) => {
							setActive(number);
							if (!event.target.closest("a,button")) onOpen(row);
						})}>
					${shown.map((column) => html`<div role="gridcell" key=${column.key} class=${cls(column.end && "end", column.kind)}>${column.cell(row)}</div>`)}
				</div>`;
			})}
		</div>
	</div>`;
}
