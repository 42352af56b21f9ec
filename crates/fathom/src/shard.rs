//! `--shard K/N`: which rows of a sweep this job runs, of several that share one cache.

use std::fmt;

use anyhow::Result;

use crate::error::Hinted;

/// More jobs than any cluster runs, so that a slip of the keyboard is noticed.
const MOST: u32 = 1 << 20;

/// One of several jobs; the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) number: u32,
    pub(crate) count: u32,
}

impl Shard {
    /// `2/4`. Arrays may count from 0 as well: only the remainder says which rows are meant, so `0/4` is `4/4`.
    pub(crate) fn read(text: &str) -> Result<Shard> {
        let wrong = |why: &str| {
            let hint = "for example `--shard 2/4`: of four jobs the second; `--shard \
                        $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT` in an array `1-4` or `0-3`";
            Hinted::error(format!("`--shard {text}`: {why}"), hint)
        };
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(number, count)| {
            Some((number.trim().parse::<u32>().ok()?, count.trim().parse::<u32>().ok()?))
        });
        match numbers {
            None => Err(wrong("a number and how many there are")),
            Some((_, 0)) => Err(wrong("there is at least one job")),
            Some((_, count)) if MOST < count => Err(wrong("so many jobs")),
            Some((number, count)) if count < number => Err(wrong("there are fewer jobs than that")),
            Some((0, count)) => Ok(Shard { number: count, count }),
            Some((number, count)) => Ok(Shard { number, count }),
        }
    }

    /// Whether this job runs a row; rows count from 0.
    pub(crate) fn owns(self, row: usize) -> bool {
        row % self.count as usize + 1 == self.number as usize
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.number, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_run_by_one_job_however_they_count() {
        for jobs in [["1/3", "2/3", "3/3"], ["0/3", "1/3", "2/3"]] {
            let shards = jobs.map(|text| Shard::read(text).unwrap());
            for row in 0..10 {
                assert_eq!(shards.iter().filter(|shard| shard.owns(row)).count(), 1, "{row}");
            }
        }
        let rows: Vec<usize> =
            (0..7).filter(|row| Shard::read("2/3").unwrap().owns(*row)).collect();
        assert_eq!(rows, [1, 4]);
        assert_eq!(Shard::read("0/4").unwrap().to_string(), "4/4");
    }

    #[test]
    fn what_is_no_shard_has_a_cure() {
        for text in ["", "2", "5/4", "1/0", "a/b", "-1/4", "1/4/2", "1/9999999"] {
            let error = crate::error::text(&Shard::read(text).unwrap_err());
            assert!(
                error.contains(&format!("`--shard {text}`")) && error.contains("hint"),
                "{error}"
            );
        }
    }
}
