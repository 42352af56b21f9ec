// A report of either kind, for scripts that ask for a field before they know which: what only the other kind has is
// undefined here.

import type { ExplainedPeak, ExplainedRefusal, Explanation } from "./explain";
import type { OutOfMemory, Peak, Report } from "./report";

type Only<Own, Other> = Own & { [Field in Exclude<keyof Other, keyof Own>]?: undefined };

interface RunParts {
  peak: Only<Peak, ExplainedPeak> | null;
  out_of_memory: Only<OutOfMemory, ExplainedRefusal> | null;
}

interface ExplainedParts {
  peak: Only<ExplainedPeak, Peak>;
  out_of_memory: Only<ExplainedRefusal, OutOfMemory> | null;
}

export type AnyReport = (Only<Report, Explanation> & RunParts) | (Only<Explanation, Report> & ExplainedParts);
