// Builds elements. Text is always text: nothing of a batch is ever read as markup.

export function el(name, attrs = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attrs)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "class") node.className = value;
    else if (key === "grow") node.style.flexGrow = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

// replace puts new children in, and keeps what is the same: a list that did not change keeps its focus and selection.
export function replace(parent, children) {
  children = children.flat(9).filter(Boolean);
  const focused = parent.contains(document.activeElement) ? document.activeElement.getAttribute("data-key") : null;
  const scroll = parent.scrollTop;
  const old = [...parent.children];
  for (const open of parent.querySelectorAll("details[open]")) {
    for (const child of children) child.querySelector?.(`details[data-key="${CSS.escape(open.dataset.key)}"]`)?.setAttribute("open", "");
  }
  children.forEach((child, i) => {
    if (!old[i]) parent.append(child);
    else if (!old[i].isEqualNode(child)) old[i].replaceWith(child);
  });
  old.slice(children.length).forEach((node) => node.remove());
  if (focused) parent.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  parent.scrollTop = scroll;
}
