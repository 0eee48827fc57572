// Lines of source as links that open the reader's editor. Which editor, and where the files stand on this machine, is the reader's choice, kept in the browser.
import { add, button, clear, h } from "./dom";

export interface EditorChoice {
  /** A name of EDITORS, "none", or an address with {file} and {line}; "" = what the server says, else VS Code. */
  editor: string;
  /** Recorded folder -> folder on this machine; the longest that fits counts. "" fits paths that are not absolute. */
  folders: [recorded: string, here: string][];
}

const EDITORS: Record<string, [title: string, address: string]> = {
  vscode: ["VS Code", "vscode://file/{file}:{line}"],
  cursor: ["Cursor", "cursor://file/{file}:{line}"],
  pycharm: ["PyCharm", "pycharm://open?file={file}&line={line}"],
};
const NONE = "none", KEY = "editor";

/** Schemes that run code, show other pages or ask other machines: a link of ours must not do so. */
const REFUSED = /^(javascript|vbscript|data|blob|file|filesystem|about|view-source|https?|wss?|ftps?|chrome|chrome-extension|moz-extension|resource|jar|mailto|tel|sms|intent|search-ms|ms-[a-z-]+|shell)$/;

let ofServer = "";

/** What `opscope serve --editor` said. */
export function setServersEditor(editor: string | undefined): void {
  ofServer = editor ?? "";
}

/** What is wrong with the address of an editor; "" = nothing. */
export function faultOf(address: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1].toLowerCase();
  if (!scheme || /[\s\x00-\x1f\x7f"'<>`\\]/.test(address)) return "An address such as vscode://file/{file}:{line} was expected.";
  if (REFUSED.test(scheme)) return `${scheme}: is no scheme of an editor.`;
  return address.indexOf("{file}") > scheme.length + 2 ? "" : "The address lacks {file}.";
}

let known: EditorChoice | undefined;
addEventListener("storage", (e) => (e.key === KEY || e.key === null) && (known = undefined));

function read(): EditorChoice {
  return (known ??= kept());
}

function kept(): EditorChoice {
  try {
    const said = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<EditorChoice>;
    const folders = Array.isArray(said.folders) ? said.folders.filter((f) => Array.isArray(f) && f.length === 2 && f.every((x) => typeof x === "string")) : [];
    return { editor: typeof said.editor === "string" ? said.editor : "", folders };
  } catch {
    return { editor: "", folders: [] };
  }
}

/** The editor in use: its title and the pattern of its addresses. undefined: lines are no links. */
function editorOf(choice: EditorChoice): [title: string, address: string] | undefined {
  const name = choice.editor || ofServer || "vscode";
  if (name === NONE) return undefined;
  if (Object.hasOwn(EDITORS, name)) return EDITORS[name];
  return faultOf(name) ? undefined : ["the editor", name];
}

/** File and line of a frame as tools write them: `path(12): name`, `path:12`, `File "path", line 12`. */
export function sourceOf(text: string): { file: string; line: number } | undefined {
  const m = /^(.+?)\((\d{1,9})\)(?:: |$)/.exec(text) ?? /^(.+?):(\d{1,9})(?=$|[: ,])/.exec(text) ?? /^File "(.+?)", line (\d{1,9})/.exec(text);
  return m && /\.(py[xi]?|ipynb|c|cc|cpp|cxx|cu|cuh|h|hpp|hip|rs|jl)$/i.test(m[1]) ? { file: m[1], line: Number(m[2]) } : undefined;
}

const absolute = (path: string) => /^(\/|[A-Za-z]:[\\/])/.test(path);

/** Where the file stands on this machine. undefined: not known. */
function hereOf(file: string, folders: EditorChoice["folders"]): string | undefined {
  const fits = (from: string) => (from === "" ? !absolute(file) : file.startsWith(from) && (/[\\/]$/.test(from) || /^[\\/]/.test(file.slice(from.length))));
  const best = folders.filter(([from]) => fits(from)).sort((a, b) => b[0].length - a[0].length)[0];
  if (!best) return absolute(file) ? file : undefined;
  const rest = file.slice(best[0].length), path = best[1].replace(/[\\/]+$/, "") + "/" + rest.replace(/^[\\/]+/, "");
  return absolute(path) ? path : undefined;
}

/** The path in an address: its parts are escaped, so that nothing of it becomes another part of the address. */
function escaped(path: string): string | undefined {
  try {
    return path.replace(/\\/g, "/").split("/").map((part, i) => (i === 0 && /^[A-Za-z]:$/.test(part) ? part : encodeURIComponent(part))).join("/");
  } catch {
    return undefined; // half a character
  }
}

/** What opens the line of a frame; undefined where the text is none, or where the file stands is not known, or no editor is wanted. */
export function editorLink(text: string): { href: string; title: string } | undefined {
  const source = sourceOf(text), choice = source && read(), editor = choice && editorOf(choice);
  if (!source || !choice || !editor) return undefined;
  const here = hereOf(source.file, choice.folders), path = here && escaped(here);
  if (!here || !path) return undefined;
  // No slash follows a slash: where the pattern has one before {file}, that of the path goes.
  const href = editor[1].replace(/(\/?)\{file\}/g, (_m, slash: string) => (slash && path.startsWith("/") ? path : slash + path)).replace(/\{line\}/g, String(source.line));
  return { href, title: `Open in ${editor[0]}: ${here}, line ${source.line}` };
}

/** The innermost frame that is not of an installed package, else the innermost. */
export function ownFrame(stack: string): string {
  const all = stack.split(/[;\n]/);
  return all.find((f) => /\(\d+\): /.test(f) && !/site-packages|dist-packages|lib\/python|torch\/|^</.test(f)) ?? all[0];
}

/** The text, as a link where it is a line of source. */
export function sourceLine(text: string, shown: Node | string = text): Node | string {
  const link = editorLink(text);
  return link ? h("a", { ...link, class: "source" }, shown) : shown;
}

/** A link beside a frame or stack that does something else when it is clicked. Its arrow is no text. */
export function sourceArrow(text: string): HTMLElement | undefined {
  const link = editorLink(/[;\n]/.test(text) ? ownFrame(text) : text), stop = (e: Event) => e.stopPropagation();
  return link && h("a", { ...link, class: "source arrow", "aria-label": link.title, onclick: stop, onkeydown: stop });
}

const box = h("dialog", { class: "help settings", "aria-label": "Editor" });

const foldersText = (folders: EditorChoice["folders"]) => folders.map(([from, to]) => `${from} = ${to}`).join("\n");

function foldersOf(text: string): EditorChoice["folders"] {
  return text.split("\n").flatMap((line): EditorChoice["folders"] => {
    const at = line.indexOf("="), from = line.slice(0, at).trim(), to = line.slice(at + 1).trim();
    return at < 0 || !absolute(to) ? [] : [[from, to]];
  });
}

/** Asks which editor opens lines of source. `changed`: what is shown is to be drawn again. */
export function showEditorChoice(changed: () => void): void {
  const now = read(), own = now.editor && now.editor !== NONE && !Object.hasOwn(EDITORS, now.editor) ? now.editor : "";
  const fault = h("p", { class: "error", role: "alert", hidden: true });
  const address = h("input", { type: "text", size: 48, value: own || "vscode://file/{file}:{line}", "aria-label": "Address", spellcheck: "false" });
  const which = h("select", { "aria-label": "Editor", onchange: () => draw() });
  const first = ofServer ? `as the server says (${EDITORS[ofServer]?.[0] ?? ofServer})` : "VS Code (default)";
  for (const [id, title] of [["", first], [NONE, "none: no links"], ...Object.entries(EDITORS).map(([id, e]) => [id, e[0]]), ["own", "another one"]])
    add(which, h("option", { value: id, selected: id === (own ? "own" : now.editor) }, title));
  const folders = h("textarea", { rows: 4, cols: 60, spellcheck: "false", "aria-label": "Folders", placeholder: "/cluster/job/repo = /home/me/repo" }, foldersText(now.folders));
  const ownRow = h("p", {}, h("label", { class: "choice" }, h("span", {}, "Address"), address), h("span", { class: "note" }, " {file} is the path, {line} the line."));
  const draw = () => (ownRow.hidden = which.value !== "own");
  const keep = () => {
    const said = which.value === "own" ? faultOf(address.value.trim()) : "", wrong = folders.value.split("\n").find((l) => l.trim() && !foldersOf(l).length);
    fault.textContent = said || (wrong === undefined ? "" : `“${wrong.trim()}”: recorded folder = folder on this machine was expected, with a whole path behind the =.`);
    fault.hidden = !fault.textContent;
    if (!fault.hidden) return;
    try {
      localStorage.setItem(KEY, JSON.stringify({ editor: which.value === "own" ? address.value.trim() : which.value, folders: foldersOf(folders.value) }));
    } catch {
      // A browser that keeps nothing has the default.
    }
    known = undefined;
    box.close();
    changed();
  };
  clear(box);
  add(box, h("h3", {}, "Lines of source open in"), h("p", {}, which), ownRow, h("h3", {}, "Where recorded folders stand on this machine"),
    h("p", { class: "note" }, "One a line: recorded folder = folder here. Nothing before the = is for paths without a folder, such as torch/nn/modules/linear.py."), folders, fault,
    h("p", {}, button("Save", keep), " ", button("Cancel", () => box.close())));
  draw();
  if (!box.isConnected) document.body.append(box);
  box.showModal();
}
