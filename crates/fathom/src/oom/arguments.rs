//! Flags of `fathom explain` for texts.

use std::path::PathBuf;

use answer::Said;
use clap::Args;

/// What can be said about a text beside it.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "For texts")]
pub(crate) struct TextArguments {
    /// Dimensions of the model, to find the shape that was tried: `batch=4,channels=256,kernel=7`; `side=?` for one
    /// that is not known
    #[arg(long, value_name = "NAME=N,…")]
    pub(crate) dims: Vec<String>,
    /// A YAML file whose whole numbers are taken as dimensions too
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A shape that is said to be what was tried: `4x256x49x256x256`
    #[arg(long, value_name = "SHAPE")]
    pub(crate) shape: Vec<String>,
    /// Also guess: usual shapes of the size that was tried
    #[arg(long)]
    pub(crate) guess: bool,
    /// What nvidia-smi shows, to be explained: `22616MiB`
    #[arg(long, value_name = "SIZE")]
    pub(crate) smi: Option<String>,
    /// `torch.cuda.max_memory_allocated()`
    #[arg(long, value_name = "SIZE")]
    pub(crate) allocated: Option<String>,
    /// `torch.cuda.max_memory_reserved()`
    #[arg(long, value_name = "SIZE")]
    pub(crate) reserved: Option<String>,
    /// Parameters of the model, counted
    #[arg(long, value_name = "N")]
    pub(crate) parameters: Option<String>,
    /// The card, for its context
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<String>,
    /// Run this on the phantom and name the allocations of the size that was tried
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl TextArguments {
    /// What the commands that go on from an answer need of them.
    pub(crate) fn said(&self) -> Said {
        Said {
            command: self.command.clone(),
            gpu: self.gpu.clone(),
            smi: self.smi.clone(),
            reserved: self.reserved.clone(),
        }
    }

    /// The first flag that was given: none of them says anything about a recording.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--dims", !self.dims.is_empty()),
            ("--config", self.config.is_some()),
            ("--shape", !self.shape.is_empty()),
            ("--guess", self.guess),
            ("--smi", self.smi.is_some()),
            ("--allocated", self.allocated.is_some()),
            ("--reserved", self.reserved.is_some()),
            ("--parameters", self.parameters.is_some()),
            ("--gpu", self.gpu.is_some()),
            ("-- COMMAND", !self.command.is_empty()),
        ];
        given.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name)
    }
}
