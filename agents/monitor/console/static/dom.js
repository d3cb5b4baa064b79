// Small helpers around the DOM. Nodes that do not change are not touched, so that focus, selection
// and screen readers stay where they are while figures update.

const SVG = "http://www.w3.org/2000/svg";

function assign(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) node.removeAttribute(name);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else set(node, name, value === true ? "" : String(value));
  }
  return node;
}

export function set(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

export function el(tag, attributes = {}, ...children) {
  const node = assign(document.createElement(tag), attributes);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function svg(tag, attributes = {}, ...children) {
  const node = assign(document.createElementNS(SVG, tag), attributes);
  node.append(...children);
  return node;
}

export function text(node, value) {
  const wanted = String(value);
  if (node.textContent !== wanted) node.textContent = wanted;
  return node;
}

export const byId = (id) => document.getElementById(id);

/** Keep the children of `parent` in step with `items`: matched by key, created once, updated in place. */
export function list(parent, items, key, make, update) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let node = known.get(name);
    known.delete(name);
    if (!node) {
      node = make(item);
      node.dataset.key = name;
    }
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
    update?.(node, item);
  }
  for (const node of known.values()) node.remove();
}

/** A table's head and body; columns are [title, class]. Roles are explicit because styles may hide them. */
export function table(node, columns) {
  if (node.tBodies.length) return node.tBodies[0];
  const cells = columns.map(([title, kind]) =>
    el("th", { scope: "col", class: kind || null, role: "columnheader" }, title),
  );
  const body = el("tbody", { role: "rowgroup" });
  node.append(el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...cells)), body);
  return body;
}
