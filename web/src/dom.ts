// Elements without HTML text: names from traces never become markup.

type Child = Node | string | number | null | undefined | false;
type Props = Record<string, string | number | boolean | undefined | ((e: any) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") e.addEventListener(name.replace(/^on/, ""), value);
    else if (value === true) e.setAttribute(name, "");
    else if (value !== undefined && value !== false) e.setAttribute(name, String(value));
  }
  add(e, ...children);
  return e;
}

export function add<T extends Node>(parent: T, ...children: Child[]): T {
  for (const c of children) {
    if (c === null || c === undefined || c === false) continue;
    parent.appendChild(c instanceof Node ? c : document.createTextNode(String(c)));
  }
  return parent;
}

export function clear(e: Element): void {
  e.replaceChildren();
}

/** A choice of words; `change` gets the new one. */
export function select(label: string, values: (string | [string, string])[], value: string, change: (v: string) => void): HTMLLabelElement {
  const s = h("select", { onchange: () => change(s.value) });
  for (const v of values) {
    const [id, text] = typeof v === "string" ? [v, v] : v;
    add(s, h("option", { value: id, selected: id === value }, text));
  }
  return h("label", { class: "choice" }, h("span", {}, label), s);
}

export function button(text: string, click: () => void, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", onclick: click, ...props }, text);
}

/** Gives the browser a file. */
export function save(name: string, content: Blob | string): void {
  const url = typeof content === "string" && content.startsWith("data:") ? content : URL.createObjectURL(new Blob([content]));
  const a = h("a", { href: url, download: name });
  a.click();
  if (url.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(url), 10000);
}
