// The views, in the order of the menu. One line each.
import type { View } from "../view";
import { overview } from "./overview";
import { reports } from "./reports";

export const VIEWS: View[] = [
  overview,
  reports,
];
