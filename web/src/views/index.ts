// The views, in the order of the menu. One line each.
import type { View } from "../view";
import { advice } from "./advice";
import { compare } from "./compare";
import { gpus } from "./gpus";
import { groups } from "./groups";
import { job } from "./job";
import { ranksTimeline } from "./ranks_timeline";
import { iterations } from "./iterations";
import { kernels } from "./kernels";
import { kernelsIteration } from "./kernels_iteration";
import { kernelsOp } from "./kernels_op";
import { memory } from "./memory";
import { modules } from "./modules";
import { opTypes } from "./op_types";
import { operators } from "./operators";
import { opsKernels } from "./ops_kernels";
import { overview } from "./overview";
import { reports } from "./reports";
import { roofline } from "./roofline";
import { sqlView } from "./sql";
import { system } from "./system";
import { timeline } from "./timeline";

export const VIEWS: View[] = [
  overview,
  advice,
  timeline,
  job,
  ranksTimeline,
  compare,
  memory,
  gpus,
  operators,
  kernels,
  modules,
  opTypes,
  groups,
  opsKernels,
  roofline,
  iterations,
  kernelsIteration,
  kernelsOp,
  system,
  sqlView,
  reports,
];
