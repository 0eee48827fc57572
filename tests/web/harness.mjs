// What the tests of the viewer share: server, page, the program's own answers, tables as the page shows them.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

const DATA = process.env.OPSCOPE_DATA, PROGRAM = process.env.OPSCOPE, ROOT = process.env.OPSCOPE_ROOT;

/** What is served, by the names that the tests use. `own` comes with the sources, the others may be absent. */
export const INPUTS = {
  own: { key: "/torch214_cpu_resnet/default", path: join(ROOT, "tests/data/torch214_cpu_resnet.json.gz") },
  plugin: { key: "resnet50_num_workers_0/worker0/1", path: join(DATA, "tb_plugin/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz") },
  h100: { key: "h100/gaunernst_bert-small-uncased__1016001/default", path: join(DATA, "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz") },
  dlprof: { key: "/dlprof_dldb/default", path: join(DATA, "dlprof/w_relu/dlprof_dldb.sqlite") },
  snapshot: { key: "/federated_llm/default", path: join(DATA, "more/memory_snapshot/federated_llm.pickle") },
  nsys: { key: "/power_iteration__baseline/default", path: join(DATA, "nsys/2025.3_nsightful_t4/power_iteration__baseline.sqlite") },
};
const SERVED = [INPUTS.own.path, join(DATA, "tb_plugin"), join(DATA, "tracelens/h100"), INPUTS.dlprof.path, INPUTS.nsys.path, INPUTS.snapshot.path];

/** For conditions that come about: generous, as the machine may be busy. */
const PATIENCE_MS = 60000;

const WINDOW = { width: 1280, height: 720 };

/** Thrown by what needs a trace that is not there. */
export class Absent extends Error {}

export function assert(ok, what) {
  if (!ok) throw new Error(what);
}

export function same(got, want, what) {
  if (got !== want) throw new Error(`${what}: got ${JSON.stringify(got)}, expected ${JSON.stringify(want)}`);
}

const SCALE = {
  ns: 1, us: 1e3, ms: 1e6, s: 1e9, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, "%": 1, FLOP: 1, KFLOP: 1e3, MFLOP: 1e6, GFLOP: 1e9, TFLOP: 1e12, PFLOP: 1e15, EFLOP: 1e18,
};

/** "80.756 ms" -> [80756000, 500]: the number, and how far it may be rounded. */
export function numberOf(text) {
  const m = /^(-?[\d,]+(?:\.(\d+))?)(?: ([A-Za-z%]+))?$/.exec(text);
  if (!m || (m[3] && !(m[3] in SCALE))) throw new Error(`no number: "${text}"`);
  const scale = m[3] ? SCALE[m[3]] : 1;
  return [Number(m[1].replace(/,/g, "")) * scale, 0.5000001 * 10 ** -(m[2] ?? (m[3] ? "" : "000")).length * scale];
}

export function near(text, want, what) {
  const [got, slack] = numberOf(text);
  if (Math.abs(got - want) > slack + 1e-9 * Math.abs(want)) throw new Error(`${what}: the page shows ${text}, expected ${want}`);
}

export class Harness {
  problems = [];

  /** `folder`: of what the tests make; in its `saved` the browser saves files. The caller removes it. */
  constructor(browser, folder) {
    this.browser = browser;
    this.folder = folder;
  }

  /** The server, with what SERVED names and a file made by import. */
  async start() {
    this.made = join(this.folder, "made.opscope");
    execFileSync(PROGRAM, ["import", existsSync(INPUTS.plugin.path) ? INPUTS.plugin.path : INPUTS.own.path, "-o", this.made], { stdio: "ignore" });
    this.server = await this.serve([...SERVED.filter(existsSync), this.made]);
    this.base = this.server.base;
  }

  /** Another server; `stop` ends it with the first. */
  serve(args) {
    // It ends with this process, however that ends.
    const child = spawn("setpriv", ["--pdeathsig", "TERM", PROGRAM, "serve", "-p", "0", ...args], { stdio: ["ignore", "pipe", "inherit"] });
    (this.children ??= []).push(child);
    return new Promise((done, fail) => {
      child.stdout.once("data", (text) => done({ child, base: String(text).trim().split("\n")[0] }));
      child.once("exit", (code) => fail(new Error(`the server ended with ${code}`)));
    });
  }

  stop() {
    for (const c of this.children ?? []) c.kill();
  }

  /** An empty page without anything that another test has left. It is the same page for all: its browser has compiled the program already. */
  async fresh(theme = "light") {
    await (this.page ??= await this.first()).unrouteAll({ behavior: "ignoreErrors" });
    await this.page.setViewportSize(WINDOW);
    this.origin = this.base.replace(/[^/]*$/, "");
    await this.page.goto(this.origin + "icon.svg");
    await this.page.evaluate((x) => (localStorage.clear(), sessionStorage.clear(), localStorage.setItem("theme", x)), theme);
    await this.page.goto("about:blank");
    this.problems = [];
  }

  /** The next test gets another page. */
  async drop() {
    await this.page?.context().close();
    this.page = undefined;
  }

  async first() {
    const context = await this.browser.newContext({ viewport: WINDOW, acceptDownloads: true }), page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.setDefaultNavigationTimeout(PATIENCE_MS);
    page.on("pageerror", (e) => this.problems.push(`the page threw: ${e.stack ?? e.message}`));
    // On a busy machine the browser asks for the page's icon when the page has been left already, and complains of that.
    const icon = (m) => /\/icon\.svg/.test(m.text() + m.location().url);
    page.on("console", (m) => /error|warning/.test(m.type()) && !icon(m) && this.problems.push(`console: ${m.text()}`));
    page.on("request", (r) => !/^(data|blob|about):/.test(r.url()) && !r.url().startsWith(this.origin) && this.problems.push(`left the server: ${r.url()}`));
    return page;
  }

  /** The address as the page has it. Playwright's `page.url()` hears of a changed hash only a moment later. */
  url() {
    return this.page.evaluate(() => location.href);
  }

  address(view, input, args = {}, base = this.base) {
    return `${base}#${view}?${new URLSearchParams({ input: INPUTS[input]?.key ?? input, ...args })}`;
  }

  need(input) {
    if (INPUTS[input] && !existsSync(INPUTS[input].path)) throw new Absent(`no ${INPUTS[input].path}`);
  }

  /** Shows a view and waits for it. `input`: a name of INPUTS, or a key. Where the page is there already, only its address changes, as by a click. */
  async open(view, input, args = {}, base = this.base) {
    this.need(input);
    this.origin = base.replace(/[^/]*$/, "");
    const [there, place] = (await this.url()).split("#"), to = this.address(view, input, args, base);
    if (there === base && `${base}#${place}` !== to) await this.page.evaluate((hash) => (location.hash = hash), to.slice(base.length));
    else {
      await this.page.goto("about:blank");
      await this.page.goto(to);
    }
    await this.ready(view);
  }

  async ready(view) {
    await this.page.waitForFunction((v) => {
      const { ready, place } = document.querySelector("main")?.dataset ?? {};
      return ready !== undefined && (!v || ready === v) && place === location.hash;
    }, view);
  }

  /** Chooses a row of a table, the first one if none is given, which makes `selector` appear. */
  async choose(key, selector, row = this.page.locator(`[data-table="${key}"] .tabulator-row`).first()) {
    await row.click();
    await this.page.waitForSelector(selector);
  }

  /** What `act` makes the browser save: its name and bytes. The driver tells nothing of what Firefox saves (a BiDi download without a navigation): the file appears. */
  async saved(act) {
    if (this.browser.browserType().name() !== "firefox") {
      const [file] = await Promise.all([this.page.waitForEvent("download"), act()]);
      return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
    }
    const folder = join(this.folder, "saved"), files = () => (existsSync(folder) ? readdirSync(folder) : []);
    for (const f of files()) rmSync(join(folder, f)); // another of its name would get another name
    await act();
    await this.until("a file is saved", () => files().length === 1 && statSync(join(folder, files()[0])).size > 0); // while it is written there is a second
    const [name] = files();
    return { name, bytes: readFileSync(join(folder, name)) };
  }

  async shot(name) {
    if (process.env.OPSCOPE_SCREENSHOTS) await this.page.screenshot({ path: join(process.env.OPSCOPE_SCREENSHOTS, name + ".png"), fullPage: true });
  }

  /** `opscope ... --format=json` of the same input. */
  program(args, input) {
    return JSON.parse(this.text([...args, "--format=json"], input));
  }

  /** What it prints. */
  text(args, input) {
    const [command, ...rest] = args, path = input.startsWith("/") ? input : INPUTS[input].path;
    this.need(input);
    const first = command === "report" ? [command, rest.shift()] : [command];
    return execFileSync(PROGRAM, [...first, path, ...rest], { maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] }).toString();
  }

  report(name, input, ...args) {
    this.need(input);
    return this.program(["report", name, ...args], input);
  }

  expected(name) {
    return JSON.parse(readFileSync(join(DATA, "tb_plugin/resnet50_num_workers_0", `expected_${name}.json`), "utf8"));
  }

  /** All rows of a table as the page shows them, on all of its pages: lists of [column number, text], in the order shown. */
  async rows(key) {
    const grid = this.page.locator(`[data-table="${key}"]`);
    await grid.locator(".tabulator-row, .tabulator-placeholder").first().waitFor();
    return grid.evaluate((e) => {
      const list = [];
      const take = (row) => {
        row.getElement(); // makes its cells
        list.push(row.getCells().filter((c) => c.getColumn().isVisible()).map((c) => {
          const cell = c.getElement(), shown = cell.textContent.trim();
          return [Number(c.getField().split(".")[1]), cell.querySelector("[data-whole]")?.dataset.whole ?? shown, shown];
        }));
        if (e.tabulator.options.dataTree && row.isTreeExpanded()) row.getTreeChildren().forEach(take);
      };
      e.tabulator.getRows("active").forEach(take);
      return list;
    });
  }

  /** Every cell that the page shows is the program's. `drawn`: columns that the page shows shortened. */
  async sameTable(key, table, drawn = []) {
    const rows = await this.rows(key);
    await this.tidy(key);
    same(rows.length, table.rows.length, `${key}: rows`);
    for (const [i, row] of rows.entries()) {
      assert(row.length > 0, `${key}: row ${i} is empty`);
      for (const [c, text, shown] of row) {
        const column = table.columns[c], want = table.rows[i][c], at = `${key}, row ${i}, ${column?.id}`;
        const short = table.columns.findIndex((x) => x.id === "short_name");
        if (column.id === "name" && short >= 0) same(shown, table.rows[i][short] || want, `${at}, short`);
        if (drawn.includes(column.id)) {
          const end = text.split("…").pop();
          assert(text === "(none)" ? want === null : String(want).includes(end.trim()), `${at}: the page shows ${text}`);
          continue;
        }
        if (want === null || want === "") same(text, "", at);
        else if (typeof want === "boolean") same(text, want ? "yes" : "no", at);
        else if (typeof want === "number") near(text, column.unit === "us" ? want * 1e3 : want, at);
        else same(text.replace(/\s+/g, " "), want.trim().replace(/\s+/g, " "), at);
      }
    }
  }

  /** Nothing on the page that axe-core calls serious: contrast, names, roles, keyboard. Of each table some rows stand for all. */
  async accessible(what) {
    this.axe ??= readFileSync(join(ROOT, "web/node_modules/axe-core/axe.min.js"), "utf8");
    const found = await this.page.evaluate(async (source) => {
      if (!window.axe) (0, eval)(source);
      const { violations } = await window.axe.run({ exclude: [[".tabulator-row:nth-child(n+3)"]] }, { resultTypes: ["violations"] });
      return violations.filter((v) => /serious|critical/.test(v.impact)).map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)}: ${v.nodes[0].failureSummary}`);
    }, this.axe);
    assert(!found.length, `${what}: ${found.join("\n")}`);
  }

  /** No two columns have one title, and no name is cut while there is room. */
  async tidy(key) {
    const { titles, cut, left } = await this.page.locator(`[data-table="${key}"]`).first().evaluate((e) => {
      const columns = e.tabulator.getColumns().filter((c) => c.isVisible());
      return { titles: columns.map((c) => c.getDefinition().title), cut: e.querySelectorAll(".cut").length, left: e.clientWidth - columns.reduce((sum, c) => sum + c.getWidth(), 0) };
    });
    same(new Set(titles).size, titles.length, `${key}: titles ${titles}`);
    assert(!cut || left < 30, `${key}: ${cut} names are cut beside ${left} pixels of nothing`);
  }

  row(key, text) {
    return this.page.locator(`[data-table="${key}"] .tabulator-row`, { hasText: text }).first();
  }

  figure(name) {
    return this.page.locator(`[data-figure="${name}"] b`).first().innerText();
  }

  /** Asks until the answer is yes. */
  async until(what, ask) {
    for (const end = performance.now() + PATIENCE_MS; !(await ask()); await new Promise((done) => setTimeout(done, 50)))
      if (performance.now() > end) throw new Error(`never came: ${what}`);
  }

  /** What a chart was given. */
  chart(title) {
    return this.page.locator(`[role="img"][aria-label="${title}"]`).evaluate((e) => {
      const o = e.chart.getOption();
      return { x: o.xAxis?.[0]?.data, series: o.series.map((s) => ({ name: s.name, type: s.type, stack: s.stack, data: s.data })) };
    });
  }
}
