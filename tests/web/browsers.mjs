// The browsers that the tests drive: where they are, and how they are begun and ended.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const DRIVER = join(here, "../../web/node_modules/playwright-core/index.mjs");

/** For a browser to start: generous, as the machine may be busy. */
const PATIENCE_MS = 120000;

/** Beside those of the driver, which lets pages from the disk read other files, as the Firefox of a user does not; and nothing is asked of Mozilla's servers. */
const PREFERENCES = { "security.fileuri.strict_origin_policy": true, "services.settings.server": "data:,#remote-settings-dummy/v1" };

/** `variable` of the environment names another one. Debian's own Firefox is driven by WebDriver BiDi, which needs no driver between. */
const BROWSERS = {
  chromium: {
    variable: "CHROMIUM", debian: "chromium-headless-shell",
    places: ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"],
    options: (executablePath) => ({ executablePath, args: ["--no-sandbox"] }),
  },
  firefox: {
    variable: "FIREFOX", debian: "firefox-esr", places: ["/usr/bin/firefox-esr", "/usr/bin/firefox"],
    options: (path) => ({ channel: "moz-firefox", executablePath: join(here, "firefox.sh"), env: { ...process.env, FIREFOX: path }, firefoxUserPrefs: PREFERENCES }),
  },
};

export const NAMES = Object.keys(BROWSERS);

/** Why `name` cannot be driven here; undefined: it can. */
export function lacking(name) {
  const { variable, debian } = BROWSERS[name];
  if (!pathOf(name)) return `no ${name} (Debian: ${debian}); ${variable}=PATH names another one`;
  return existsSync(DRIVER) ? undefined : "no web/node_modules/playwright-core; the build fetches it";
}

function pathOf(name) {
  return process.env[BROWSERS[name].variable] ?? BROWSERS[name].places.find(existsSync);
}

/** What `asked` gives, unless that takes longer. */
export async function within(ms, what, asked) {
  let timer;
  const late = new Promise((_, fail) => (timer = setTimeout(() => fail(new Error(`${what}: nothing for ${ms / 1000} s`)), ms)));
  return Promise.race([asked, late]).finally(() => clearTimeout(timer));
}

/** A browser that saves files in the folder `saved`. Signals are the caller's; the browser ends when the caller's process does, however that ends. */
export async function launch(name, saved) {
  const driver = await import(DRIVER), signals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false };
  return driver[name].launch({ ...BROWSERS[name].options(pathOf(name)), ...signals, downloadsPath: saved, timeout: PATIENCE_MS });
}
