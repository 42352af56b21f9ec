//! What libraries need work areas for, and how their sizes are known.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! kinds {
    ($($kind:ident = $name:literal, $title:literal;)*) => {
        /// What a work area is for. The numbers are in recordings' rows and on the status page.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Work {
            #[default]
            $($kind,)*
        }

        impl Work {
            /// Every kind, by its number.
            pub const ALL: &[Work] = &[$(Work::$kind,)*];

            /// The name of such a work area as a tensor.
            pub fn name(self) -> &'static str {
                match self { $(Work::$kind => $name,)* }
            }

            /// What it is for, in words.
            pub fn title(self) -> &'static str {
                match self { $(Work::$kind => $title,)* }
            }
        }
    };
}

kinds! {
    Unknown = "workspace", "unknown";
    Cublas = "cuBLAS workspace", "matrix products";
    Cudnn = "cuDNN workspace", "other calls of cuDNN";
    Forward = "cuDNN conv forward", "convolution forward";
    BackwardData = "cuDNN conv backward data", "convolution backward data";
    BackwardFilter = "cuDNN conv backward filter", "convolution backward filter";
    Attention = "cuDNN attention", "attention";
    BatchNorm = "cuDNN batch norm", "batch norm";
    Rnn = "cuDNN RNN", "RNN";
    RnnReserve = "cuDNN RNN reserve", "RNN reserve";
    Ctc = "cuDNN CTC loss", "CTC loss";
    Search = "cuDNN algorithm search", "algorithm search";
}

/// How many kinds there are.
pub const KINDS: usize = 12;

impl Work {
    /// Whether PyTorch goes on if it does not get such a work area. A search is made with half of it, and so on; for a
    /// convolution the next algorithm is taken, down to those that need nothing. All others are errors.
    pub fn is_soft(self) -> bool {
        matches!(self, Work::Forward | Work::BackwardData | Work::BackwardFilter | Work::Search)
    }
}

/// Who says how large a work area is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The real cuDNN, for this card.
    Exact,
    /// A model of ours.
    Modelled,
}

/// One kind of work on the status page.
#[repr(C)]
#[derive(Debug, Default)]
pub struct WorkStatus {
    exact: SourceStatus,
    modelled: SourceStatus,
}

/// Of one source.
#[repr(C)]
#[derive(Debug, Default)]
struct SourceStatus {
    calls: AtomicU64,
    largest: AtomicU64,
}

impl WorkStatus {
    /// Notes a call that needs so many bytes.
    pub fn note(&self, source: Source, bytes: u64) {
        let status = match source {
            Source::Exact => &self.exact,
            Source::Modelled => &self.modelled,
        };
        status.calls.fetch_add(1, Relaxed);
        status.largest.fetch_max(bytes, Relaxed);
    }
}

/// What the calls of one kind and source needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// How many calls there were.
    pub calls: u64,
    /// The most bytes that one of them needed.
    pub largest: u64,
}

/// One kind of work as the launcher reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkReading {
    /// Which.
    pub work: Work,
    /// Sizes that the real cuDNN gave.
    pub exact: Needs,
    /// Sizes that a model gave.
    pub modelled: Needs,
}

impl WorkReading {
    /// Reads the kind with this number from the four numbers of its [`WorkStatus`].
    pub(crate) fn parse(number: usize, [a, b, c, d]: [u64; 4]) -> Option<WorkReading> {
        let work = *Work::ALL.get(number)?;
        let (exact, modelled) = (Needs { calls: a, largest: b }, Needs { calls: c, largest: d });
        Some(WorkReading { work, exact, modelled })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_numbers_of_their_places() {
        assert_eq!(Work::ALL.len(), KINDS);
        assert!(Work::ALL.iter().enumerate().all(|(number, work)| *work as usize == number));
    }
}
