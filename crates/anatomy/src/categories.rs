//! Bytes by category. What the allocator adds to a request is a category of its own: rounding.

use recording::Category;

const COUNT: usize = Category::ALL.len();

/// The order of reports: what lasts first, what nobody named last.
const ORDER: [Category; COUNT] = [
    Category::Weights,
    Category::Gradients,
    Category::Optimizer,
    Category::Activations,
    Category::KvCache,
    Category::Inputs,
    Category::Buffers,
    Category::ModelCopies,
    Category::Unsharded,
    Category::Communication,
    Category::Casts,
    Category::Temporaries,
    Category::Workspace,
    Category::Unknown,
];

/// Which name an allocation keeps when it has several, the strongest first.
const PRECEDENCE: [Category; COUNT] = [
    Category::Weights,
    Category::Optimizer,
    Category::Gradients,
    Category::ModelCopies,
    Category::KvCache,
    Category::Buffers,
    Category::Unsharded,
    Category::Communication,
    Category::Casts,
    Category::Workspace,
    Category::Inputs,
    Category::Activations,
    Category::Temporaries,
    Category::Unknown,
];

/// Bytes asked for by category, and the rounding of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Categories {
    bytes: [u64; COUNT],
    /// What blocks are larger than what was asked for.
    pub rounding: u64,
}

impl Categories {
    /// Bytes asked for in one category.
    pub fn of(&self, category: Category) -> u64 {
        self.bytes[category as usize]
    }

    /// All bytes: those of the blocks.
    pub fn sum(&self) -> u64 {
        self.bytes.iter().sum::<u64>() + self.rounding
    }

    /// Names and bytes in the order of reports: rounding before unknown, nothing left out.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let named = ORDER.map(|category| (category.name(), self.of(category)));
        let (unknown, rest) = named.split_last().map_or((named[0], &named[..]), |(a, b)| (*a, b));
        let mut all = rest.to_vec();
        all.extend([("rounding", self.rounding), unknown]);
        all.into_iter()
    }

    /// A block comes.
    pub(crate) fn add(&mut self, category: Category, requested: u64, block: u64) {
        self.bytes[category as usize] += requested;
        self.rounding += block - requested;
    }

    /// A block goes.
    pub(crate) fn take(&mut self, category: Category, requested: u64, block: u64) {
        self.bytes[category as usize] -= requested;
        self.rounding -= block - requested;
    }
}

/// Is the first the stronger name?
pub(crate) fn outranks(first: Category, second: Category) -> bool {
    let rank = |category: Category| PRECEDENCE.iter().position(|other| *other == category);
    rank(first) < rank(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_has_its_place() {
        for category in Category::ALL {
            assert!(ORDER.contains(category) && PRECEDENCE.contains(category), "{category:?}");
        }
        let names: Vec<&str> = Categories::default().iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), COUNT + 1);
        assert_eq!(names[names.len() - 2..], ["rounding", "unknown"]);
    }

    #[test]
    fn bytes_and_rounding_sum_to_blocks() {
        let mut bytes = Categories::default();
        bytes.add(Category::Weights, 1000, 1024);
        bytes.add(Category::Inputs, 512, 512);
        assert_eq!((bytes.of(Category::Weights), bytes.rounding, bytes.sum()), (1000, 24, 1536));
        bytes.take(Category::Weights, 1000, 1024);
        assert_eq!(bytes.sum(), 512);
    }
}
