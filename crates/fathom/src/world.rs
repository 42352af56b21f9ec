//! The world that a run is a rank of: how many ranks, on how many cards a node, and which of them run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use contract::environment as name;
use contract::status::MAX_DEVICES;

use crate::cli::WorldArguments;
use crate::error::Hinted;

/// Cards of a node unless told otherwise: what most rented machines have.
const USUAL_CARDS: u32 = 8;

/// The most ranks that run at once request.
const MOST_RANKS: usize = 256;

/// A larger world than any that was built, so that a slip of the keyboard is noticed.
const LARGEST: u32 = 1 << 20;

/// A world and the ranks of it that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct World {
    pub(crate) size: u32,
    pub(crate) per_node: u32,
    pub(crate) ranks: Vec<u32>,
}

/// One rank's place in its world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankPlace {
    pub(crate) size: u32,
    pub(crate) per_node: u32,
    pub(crate) rank: u32,
    /// Where ranks of one run leave what only they know.
    pub(crate) letters: PathBuf,
}

impl World {
    /// What the flags ask for; `None` without a world.
    pub(crate) fn resolve(flags: &WorldArguments) -> Result<Option<World>> {
        let Some(size) = flags.world_size else {
            let given = [
                ("--rank", flags.rank.is_some()),
                ("--ranks", flags.ranks.is_some()),
                ("--gpus-per-node", flags.gpus_per_node.is_some()),
            ];
            return match given.iter().find(|(_, is_given)| *is_given) {
                Some((flag, _)) => Err(Hinted::error(
                    format!("`{flag}` needs a world"),
                    format!("say how many ranks there are: `--world-size 8 {flag} …`"),
                )),
                None => Ok(None),
            };
        };
        let world = World::new(size, flags.gpus_per_node)?;
        let ranks = match (&flags.rank, &flags.ranks) {
            (Some(rank), _) => vec![inside(*rank, size)?],
            (None, Some(text)) => parse_ranks(text, size)?,
            (None, None) => world.ranks,
        };
        Ok(Some(World { ranks, ..world }))
    }

    /// A world of so many ranks, of which the first is asked for.
    pub(crate) fn new(size: u32, per_node: Option<u32>) -> Result<World> {
        if size == 0 || LARGEST < size {
            return Err(Hinted::error(
                format!("`--world-size {size}` is out of range (1 to {LARGEST})"),
                "write how many ranks the job has, as `--world-size 8`",
            ));
        }
        Ok(World { size, per_node: self::per_node(size, per_node)?, ranks: vec![0] })
    }

    /// One rank of it.
    pub(crate) fn place(&self, rank: u32, letters: &Path) -> RankPlace {
        RankPlace { size: self.size, per_node: self.per_node, rank, letters: letters.to_owned() }
    }
}

impl RankPlace {
    /// What a launcher such as `torchrun` tells each of its processes, and what the doorway needs to know.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let (local, node) = (self.rank % self.per_node, self.rank / self.per_node);
        let nodes = self.size / self.per_node;
        let letters = self.letters.to_string_lossy().into_owned();
        let numbers = [
            (name::WORLD_SIZE, self.size),
            (name::RANK, self.rank),
            (name::DEVICES, self.per_node),
            ("WORLD_SIZE", self.size),
            ("RANK", self.rank),
            ("LOCAL_RANK", local),
            ("LOCAL_WORLD_SIZE", self.per_node),
            ("GROUP_RANK", node),
            ("GROUP_WORLD_SIZE", nodes),
            ("NODE_RANK", node),
            ("ROLE_RANK", self.rank),
            ("ROLE_WORLD_SIZE", self.size),
            ("MASTER_PORT", 29500),
            ("TORCHELASTIC_RESTART_COUNT", 0),
            ("TORCHELASTIC_MAX_RESTARTS", 0),
            // Beyond so many ranks PyTorch gathers ids of several roots: no other root runs here.
            ("TORCH_NCCL_RANKS_PER_ROOT", LARGEST),
            // Its threads ask the store for news of other ranks, of whom there are none.
            ("TORCH_NCCL_ENABLE_MONITORING", 0),
        ];
        let texts = [
            (name::LETTERS, letters.as_str()),
            ("MASTER_ADDR", "127.0.0.1"),
            ("ROLE_NAME", "default"),
            ("TORCHELASTIC_RUN_ID", "fathom"),
            ("TORCHELASTIC_USE_AGENT_STORE", "False"),
        ];
        let numbers = numbers.into_iter().map(|(name, number)| (name, number.to_string()));
        numbers.chain(texts.map(|(name, text)| (name, text.to_owned()))).collect()
    }
}

fn per_node(size: u32, asked: Option<u32>) -> Result<u32> {
    let most = MAX_DEVICES as u32;
    match asked {
        Some(asked) if asked == 0 || most < asked => Err(Hinted::error(
            format!("{asked} cards in one node"),
            format!("`--gpus-per-node` is between 1 and {most}"),
        )),
        Some(asked) if !size.is_multiple_of(asked) => Err(Hinted::error(
            format!("`--world-size {size}` does not divide into nodes of {asked} GPUs"),
            format!("`--world-size {}` fills whole nodes", size.next_multiple_of(asked)),
        )),
        Some(asked) => Ok(asked),
        None => Ok((1..=USUAL_CARDS).rev().find(|cards| size.is_multiple_of(*cards)).unwrap_or(1)),
    }
}

fn inside(rank: u32, size: u32) -> Result<u32> {
    if rank < size {
        return Ok(rank);
    }
    Err(Hinted::error(
        format!("`--rank {rank}` is out of range (0 to {})", size - 1),
        format!("ranks count from 0: the last of {size} is {}", size - 1),
    ))
}

/// `0,1,last`, `0..4` (half-open, as in Rust and Python's `range`), `all`.
fn parse_ranks(text: &str, size: u32) -> Result<Vec<u32>> {
    let mut ranks = BTreeSet::new();
    for part in text.split(',').map(str::trim) {
        match (part, part.split_once("..")) {
            ("all", _) => ranks.extend(0..size.min(MOST_RANKS as u32 + 1)),
            ("last", _) => drop(ranks.insert(size - 1)),
            (_, Some((start, end))) => {
                let (start, end) = (number(start, text)?, number(end, text)?);
                inside(end.saturating_sub(1), size)?;
                ranks.extend(start..end.min(start.saturating_add(MOST_RANKS as u32 + 1)));
            }
            _ => drop(ranks.insert(inside(number(part, text)?, size)?)),
        }
    }
    match ranks.len() {
        0 => {
            Err(Hinted::error(format!("`--ranks {text}` names no rank"), "for example `0,1,last`"))
        }
        count if MOST_RANKS < count => Err(Hinted::error(
            format!("`--ranks {text}` asks for more than {MOST_RANKS} ranks"),
            "ranks that do the same need the same: run a few, for example `--ranks 0,1,last`",
        )),
        _ => Ok(ranks.into_iter().collect()),
    }
}

fn number(part: &str, text: &str) -> Result<u32> {
    part.trim().parse().map_err(|_| {
        Hinted::error(
            format!("`{}` in `--ranks {text}` is no rank", part.trim()),
            "write numbers, `last`, a range such as `0..4`, or `all`: `--ranks 0,1,last`",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(size: u32, ranks: &str) -> Result<Vec<u32>> {
        parse_ranks(ranks, size)
    }

    #[test]
    fn ranks_are_numbers_ranges_and_words() {
        assert_eq!(world(8, "0,1,last").unwrap(), [0, 1, 7]);
        assert_eq!(world(8, "2..4, 3").unwrap(), [2, 3]);
        assert_eq!(world(4, "all").unwrap(), [0, 1, 2, 3]);
        for wrong in ["8", "", "x", "0..9", "-1", "0,,1"] {
            assert!(world(8, wrong).is_err(), "{wrong}");
        }
        assert!(world(4096, "all").is_err());
    }

    #[test]
    fn nodes_are_filled() {
        assert_eq!(per_node(4096, None).unwrap(), 8);
        assert_eq!(per_node(12, None).unwrap(), 6);
        assert_eq!(per_node(7, None).unwrap(), 7);
        assert_eq!(per_node(11, None).unwrap(), 1);
        assert!(per_node(12, Some(8)).is_err() && per_node(8, Some(0)).is_err());
    }

    #[test]
    fn a_rank_knows_its_node() {
        let world = World { size: 16, per_node: 8, ranks: vec![11] };
        let environment = world.place(11, Path::new("letters")).environment();
        let get = |name: &str| {
            environment.iter().find(|row| row.0 == name).map(|row| row.1.as_str()).unwrap_or("")
        };
        assert_eq!((get("RANK"), get("LOCAL_RANK"), get("GROUP_RANK")), ("11", "3", "1"));
        assert_eq!((get("WORLD_SIZE"), get("LOCAL_WORLD_SIZE")), ("16", "8"));
    }
}
