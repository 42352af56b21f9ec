//! About how long a recipe takes on this machine's CPU: enough to tell milliseconds from minutes.

use super::geometry::Geometry;
use super::recipe::Recipe;

/// Of a call.
const SECONDS_PER_CALL: f64 = 15e-6;
/// Read and written by simple kernels.
const BYTES_PER_SECOND: f64 = 1.5e9;
/// Of matrix products and convolutions, on few cores.
const FLOPS: f64 = 5e10;
/// Comparisons of a sort.
const SORTS_PER_SECOND: f64 = 1e7;

const SORTS: [&str; 8] =
    ["sort", "argsort", "topk", "unique", "msort", "median", "kthvalue", "quantile"];

impl Recipe {
    pub(crate) fn seconds(&self) -> f64 {
        let made = || self.outputs().iter().map(|output| &output.geometry);
        let given = || self.inputs.iter().map(|input| &input.geometry);
        let bytes: u64 = made().chain(given()).map(Geometry::bytes).sum();
        // What is written in place is copied first, with all of its storage.
        let copied: u64 = self
            .outputs()
            .iter()
            .filter_map(|output| output.value.upgrade())
            .map(|value| value.bytes)
            .sum();
        let mut seconds = SECONDS_PER_CALL + (bytes + copied) as f64 / BYTES_PER_SECOND;
        seconds += self.flops() / FLOPS;
        if SORTS.iter().any(|word| self.name.contains(word)) {
            let elements: u64 = given().map(Geometry::elements).max().unwrap_or(0);
            seconds += elements as f64 / SORTS_PER_SECOND;
        }
        seconds
    }

    /// Two for each multiplication that is added to another.
    fn flops(&self) -> f64 {
        let made = self.outputs().iter().map(|output| output.geometry.elements()).max().unwrap_or(0)
            as f64;
        let size =
            |number: usize| self.inputs.get(number).map_or(&[][..], |input| &input.geometry.size);
        let name = &*self.name;
        if name.contains("conv") {
            // Each element of the result, or of the input of a transposed one, meets one filter.
            let filter: i64 = size(1).iter().skip(1).product();
            let input: i64 = size(0).iter().product();
            let meets = if name.contains("transpose") { input as f64 } else { made };
            return 2.0 * meets * filter as f64;
        }
        if name.contains("scaled_dot_product") {
            let keys = size(1).iter().rev().nth(1).copied().unwrap_or(1);
            let queries: i64 = size(0).iter().product();
            return 4.0 * queries as f64 * keys as f64;
        }
        if is_product(name) {
            let inner = self.inputs.iter().filter_map(|input| input.geometry.size.last()).max();
            return 2.0 * made * inner.copied().unwrap_or(1) as f64;
        }
        0.0
    }
}

/// Not every name with `mm` in it: `cummax` and `lgamma` are none.
fn is_product(name: &str) -> bool {
    const WORDS: [&str; 8] = ["matmul", "linear", "einsum", "dot", "lstm", "gru", "cdist", "addmm"];
    let ends = name.trim_end_matches('_');
    WORDS.iter().any(|word| name.contains(word))
        || ends.ends_with("mv")
        || ends
            .strip_suffix("mm")
            .is_some_and(|before| before.is_empty() || before.ends_with(['b', 's', 'p', '_']))
}
