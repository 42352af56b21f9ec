//! Who holds the peak: the user's lines, and the tensors of each with their arithmetic.

use ::anatomy::{Alike, Dissection};
use serde::Serialize;
use study::Run;

use super::anatomy::title;
use crate::bytes;
use crate::markup::{block, code, plain, table};
use crate::sections::columns::share;

/// Lines that are shown, at most.
const LINES: usize = 8;

/// Rows of tensors of one line, at most.
const TENSORS: usize = 8;

/// A line with less than this part of the peak is left out.
const WORTH: u64 = 100;

/// Bytes of one element.
const SIZES: [(&str, u64); 14] = [
    ("float64", 8),
    ("int64", 8),
    ("complex64", 8),
    ("complex128", 16),
    ("float32", 4),
    ("int32", 4),
    ("float16", 2),
    ("bfloat16", 2),
    ("int16", 2),
    ("int8", 1),
    ("uint8", 1),
    ("bool", 1),
    ("float8_e4m3fn", 1),
    ("float8_e5m2", 1),
];

/// A line of the user's, with what it holds at the peak.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Place {
    pub file: String,
    pub line: u32,
    pub function: String,
    /// What stands there.
    pub source: String,
    pub bytes: u64,
    /// Of these.
    pub of_bytes: u64,
    pub tensors: Vec<Placed>,
    /// Of tensors that are not listed.
    pub rest_bytes: u64,
    pub rest_count: u64,
}

/// Tensors alike.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Placed {
    pub count: u64,
    /// Of one.
    pub bytes: u64,
    pub total_bytes: u64,
    pub dtype: String,
    pub shape: Vec<u64>,
    /// `256 × 128 × 4 B`; empty where the shape does not give the bytes.
    pub arithmetic: String,
    pub category: String,
    /// What it is, or who made it.
    pub name: String,
    pub module: String,
}

impl Place {
    /// The lines that hold most.
    pub fn all(run: &Run) -> Vec<Place> {
        let Some(at) = run.anatomy().map(|anatomy| &anatomy.allocated_peak) else {
            return Vec::new();
        };
        let worth = at
            .lines
            .iter()
            .filter(|line| !line.file.is_empty() && at.allocated / WORTH <= line.bytes);
        worth.take(LINES).map(|line| Place::of(line, at)).collect()
    }

    fn of(line: &::anatomy::LineBytes, at: &Dissection) -> Place {
        let is_here =
            |row: &&Alike| row.first.origin.file == line.file && row.first.origin.line == line.line;
        let here: Vec<&Alike> = at.alike.iter().filter(is_here).collect();
        let tensors: Vec<Placed> =
            here.iter().take(TENSORS).map(|row| Placed::of(row, blocks(row, at))).collect();
        let shown: u64 = tensors.iter().map(|row| row.total_bytes).sum();
        let shown_count: u64 = tensors.iter().map(|row| row.count).sum();
        Place {
            file: line.file.clone(),
            line: line.line,
            function: line.function.clone(),
            source: line.source.clone(),
            bytes: line.bytes,
            of_bytes: at.allocated,
            rest_bytes: line.bytes.saturating_sub(shown),
            rest_count: line.count.saturating_sub(shown_count),
            tensors,
        }
    }

    /// `None` without lines.
    pub(super) fn section(all: &[Place]) -> Option<String> {
        (!all.is_empty()).then(|| {
            let intro = "Your lines that hold the peak, the largest first; with each, the tensors that it made.";
            let each: Vec<String> = all.iter().map(Place::markdown).collect();
            format!("## Where\n\n{intro}\n\n{}", each.join("\n"))
        })
    }

    fn markdown(&self) -> String {
        let place = code(&format!("{}:{}", self.file, self.line));
        let inside = match self.function.as_str() {
            "" | "<module>" => String::new(),
            function => format!(" in {}", code(function)),
        };
        let (size, part) = (bytes::text(self.bytes), share(self.bytes, self.of_bytes));
        let mut text = format!("### {place}{inside}: {size}, {part}\n\n");
        if !self.source.is_empty() {
            text += &block("python", self.source.trim());
            text.push('\n');
        }
        let rows: Vec<Vec<String>> = self.tensors.iter().map(Placed::row).collect();
        text += &table(&["count:", "tensor", "one of them:", "together:", "what", "module"], &rows);
        if self.rest_count != 0 {
            text += &format!(
                "And {} smaller, {} together.\n",
                count(self.rest_count),
                bytes::text(self.rest_bytes)
            );
        }
        text
    }
}

/// Bytes of the blocks of all of them: one may have been given a larger block than another.
fn blocks(row: &Alike, at: &Dissection) -> u64 {
    let of = &row.first;
    let is_one = |it: &&::anatomy::Tensor| {
        (it.bytes, it.category, &it.dtype, &it.shape)
            == (of.bytes, of.category, &of.dtype, &of.shape)
            && (&it.origin.file, it.origin.line) == (&of.origin.file, of.origin.line)
    };
    let (mut count, mut bytes) = (0, 0u64);
    for one in at.tensors.iter().filter(is_one) {
        (count, bytes) = (count + 1, bytes.saturating_add(one.block));
    }
    if count == row.count { bytes } else { of.block.saturating_mul(row.count) }
}

impl Placed {
    fn of(row: &Alike, total_bytes: u64) -> Placed {
        let tensor = &row.first;
        let origin = &tensor.origin;
        let maker = if origin.operator.is_empty() { &origin.node } else { &origin.operator };
        let name = if tensor.name.is_empty() { maker } else { &tensor.name };
        Placed {
            count: row.count,
            bytes: tensor.bytes,
            total_bytes,
            dtype: tensor.dtype.clone(),
            shape: if tensor.dtype.is_empty() { Vec::new() } else { tensor.shape.clone() },
            arithmetic: arithmetic(&tensor.dtype, &tensor.shape, tensor.bytes),
            category: tensor.category.name().to_owned(),
            name: name.clone(),
            module: origin.module.clone(),
        }
    }

    fn row(&self) -> Vec<String> {
        let sizes: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        let tensor = match self.dtype.as_str() {
            "" => String::new(),
            dtype => code(&format!("{dtype}[{}]", sizes.join(", "))),
        };
        let one = match self.arithmetic.as_str() {
            "" => bytes::text(self.bytes),
            sum => format!("{sum} = {}", bytes::text(self.bytes)),
        };
        let what = match self.name.as_str() {
            "" => title(&self.category),
            name => format!("{}: {}", title(&self.category), plain(name)),
        };
        let module = if self.module.is_empty() { String::new() } else { code(&self.module) };
        vec![self.count.to_string(), tensor, one, bytes::text(self.total_bytes), what, module]
    }
}

/// `16,384 × 512 × 32 × 4 B`; empty where that is not what was asked for.
pub(super) fn arithmetic(dtype: &str, shape: &[u64], bytes: u64) -> String {
    let Some((_, size)) = SIZES.iter().find(|(name, _)| *name == dtype) else {
        return String::new();
    };
    let product = shape.iter().try_fold(*size, |product, side| product.checked_mul(*side));
    if product != Some(bytes) || shape.is_empty() {
        return String::new();
    }
    let sides: Vec<String> = shape.iter().map(|side| count(*side)).collect();
    format!("{} × {size} B", sides.join(" × "))
}

/// `16,384`
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_shown_where_it_gives_the_bytes() {
        assert_eq!(arithmetic("float32", &[16384, 512, 32], 1 << 30), "16,384 × 512 × 32 × 4 B");
        // A view that keeps more alive than it shows, and a type that nobody knows.
        assert_eq!(arithmetic("float32", &[2], 64), "");
        assert_eq!(arithmetic("quint4x2", &[2], 1), "");
        assert_eq!(arithmetic("float32", &[u64::MAX, 2], 64), "");
    }
}
