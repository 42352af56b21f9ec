//! The user's line behind a call stack: the innermost frame that is in no library; and behind that the library's line.

use recording::{Frame, OwnerId, Recording, StackId, TextId};

/// Folders of installed packages and of Python itself.
const LIBRARIES: [&str; 3] = ["/site-packages/", "/dist-packages/", "/lib/python"];

/// Those of installed packages alone.
const PACKAGES: [&str; 2] = ["/site-packages/", "/dist-packages/"];

/// Packages whose lines are not told.
const OWN: [&str; 2] = ["torch/", "fathom/"];

/// Folders of torch where it is used from its sources, code that it or PyTorch Geometric has generated, and
/// our own doorway where it is not installed.
const SOURCES: [&str; 10] = [
    "/torch/_",
    "/torch/nn/",
    "/torch/optim/",
    "/torch/autograd/",
    "/torch/utils/",
    "/torch/cuda/",
    "/torch/distributed/",
    "/torchinductor_",
    "/torch_geometric.",
    "/python/fathom/",
];

/// Frames of C++ that memory snapshots may hold.
const NOT_PYTHON: [&str; 10] =
    [".cpp", ".cc", ".c", ".cu", ".h", ".hpp", ".cuh", ".so", ".o", ".S"];

/// Lines of a stack that are told: recursion goes deeper, but says no more.
const DEEPEST: usize = 128;

/// For each stack the frame to show.
pub struct Source<'a> {
    recording: &'a Recording,
    ranks: Vec<Rank>,
    of_stack: Vec<Shown>,
}

/// A frame and how well it tells where the user was.
#[derive(Clone, Copy, Default)]
struct Shown {
    frame: Option<Frame>,
    rank: Rank,
    /// The innermost line of a library that the frame leads to.
    library: Option<Frame>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Generated code, C++, or nothing: never shown.
    #[default]
    Nowhere,
    /// Python of a library: shown where the user's is not known.
    Library,
    /// The user's own.
    Users,
}

impl<'a> Source<'a> {
    /// Reads the stacks of a recording.
    pub fn new(recording: &'a Recording) -> Source<'a> {
        let ranks: Vec<Rank> = recording.texts.iter().map(rank).collect();
        let rank = |file: TextId| ranks.get(file.0 as usize).copied().unwrap_or_default();
        let mut of_stack: Vec<Shown> = Vec::with_capacity(recording.stacks.len());
        for stack in &recording.stacks {
            let frame = recording.frames.get(stack.frame.0 as usize).copied();
            let rank = frame.map_or(Rank::Nowhere, |frame| rank(frame.file));
            let below = stack.caller.and_then(|StackId(caller)| of_stack.get(caller as usize));
            let below = below.copied().unwrap_or_default();
            // The innermost of the best rank.
            let own = frame.filter(|_| rank != Rank::Nowhere);
            let shown =
                if below.rank <= rank { Shown { frame: own, rank, ..below } } else { below };
            let is_telling = |frame: &Frame| is_package(recording.texts.get(frame.file));
            let library = match rank {
                Rank::Users => None,
                _ => own.filter(is_telling).or(below.library),
            };
            of_stack.push(Shown { library, ..shown });
        }
        Source { recording, ranks, of_stack }
    }

    /// The line of an owner's stack.
    pub fn line(&self, owner: OwnerId) -> Option<Frame> {
        let stack = self.recording.owners.get(owner.0 as usize)?.stack?;
        self.of_stack.get(stack.0 as usize)?.frame
    }

    /// Where the user's line has led to in an installed package other than torch, whose own lines say no more than
    /// its operators do.
    pub fn library(&self, owner: OwnerId) -> Option<Frame> {
        let stack = self.recording.owners.get(owner.0 as usize)?.stack?;
        let shown = self.of_stack.get(stack.0 as usize)?;
        shown.library.filter(|_| shown.rank == Rank::Users)
    }

    /// The user's own lines of an owner's stack, outermost first, of deep ones the inner part; what
    /// [`Source::line`] gives if there are none.
    pub fn users_lines(&self, owner: OwnerId) -> Vec<Frame> {
        let mut lines = Vec::new();
        let mut at = self.recording.owners.get(owner.0 as usize).and_then(|owner| owner.stack);
        while lines.len() < DEEPEST
            && let Some(stack) = at.and_then(|id| self.recording.stacks.get(id.0 as usize))
        {
            let frame = self.recording.frames.get(stack.frame.0 as usize).copied();
            let is_users =
                |frame: &Frame| self.ranks.get(frame.file.0 as usize) == Some(&Rank::Users);
            lines.extend(frame.filter(is_users));
            // A caller comes before: what a damaged file says otherwise would have no end.
            at = stack.caller.filter(|caller| Some(*caller) < at);
        }
        lines.reverse();
        if lines.is_empty() { self.line(owner).into_iter().collect() } else { lines }
    }
}

/// The name of a file in its package: `transformers/trainer.py`.
pub(crate) fn in_package(file: &str) -> &str {
    let start = PACKAGES.iter().filter_map(|folder| Some(file.rfind(folder)? + folder.len())).max();
    start.map_or(file, |start| &file[start..])
}

fn is_package(file: &str) -> bool {
    let name = in_package(file);
    name.len() < file.len() && !OWN.iter().any(|own| name.starts_with(own))
}

fn rank(file: &str) -> Rank {
    let file = &file.replace('\\', "/");
    let is_code = !file.is_empty() && !file.starts_with('<') && !file.starts_with("??");
    let is_library_of_c = file.contains(".so.") || file.contains("/bin/python");
    if !is_code || is_library_of_c || NOT_PYTHON.iter().any(|ending| file.ends_with(ending)) {
        return Rank::Nowhere;
    }
    match LIBRARIES.iter().chain(&SOURCES).any(|folder| file.contains(folder)) {
        true => Rank::Library,
        false => Rank::Users,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_not_the_users() {
        for file in ["train.py", "/home/me/lib/net.py", "/tmp/ipykernel_12/34.py"] {
            assert_eq!(rank(file), Rank::Users, "{file}");
        }
        for file in [
            "/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py",
            "/usr/lib/python3/dist-packages/torch/optim/adam.py",
            "/usr/lib/python3.12/threading.py",
            "/build/python/fathom/_doorway/recorder/recorder.py",
            "/home/me/pytorch/torch/nn/modules/module.py",
            "/tmp/torchinductor_me/ab/cab.py",
            "/tmp/torch_geometric.nn.conv.gat_conv_GATConv_propagate_ymq_anjx.py",
            r"C:\me\.venv\lib\site-packages\torch\nn\modules\linear.py",
        ] {
            assert_eq!(rank(file), Rank::Library, "{file}");
        }
        for file in [
            "<frozen runpy>",
            "??",
            "",
            "/pytorch/c10/cuda/CUDACachingAllocator.cpp",
            "/lib/x86_64-linux-gnu/libstdc++.so.6",
            "/home/me/.pyenv/versions/3.11.7/bin/python3.11",
        ] {
            assert_eq!(rank(file), Rank::Nowhere, "{file}");
        }
    }

    #[test]
    fn the_line_of_a_library_is_told_behind_the_users() {
        let text = r#"
text 1 "train.py"
text 2 "/v/site-packages/transformers/trainer.py"
text 3 "/v/site-packages/torch/nn/linear.py"
frame 0 file 1 line 1
frame 1 file 2 line 2
frame 2 file 3 line 3
frame 3 file 1 line 4
stack 0 frame 0
stack 1 frame 1 caller 0
stack 2 frame 2 caller 1
stack 3 frame 3 caller 1
stack 4 frame 2 caller 3
owner 0 stack 2
owner 1 stack 4
owner 2 stack 0
"#;
        let recording = recording::text::recording(text).unwrap();
        let source = Source::new(&recording);
        let lines = |owner| {
            let line = |frame: Frame| frame.line;
            (source.line(OwnerId(owner)).map(line), source.library(OwnerId(owner)).map(line))
        };
        assert_eq!(lines(0), (Some(1), Some(2)), "torch's own line is not told");
        assert_eq!(lines(1), (Some(4), None), "a hook that the trainer calls is the user's");
        assert_eq!(lines(2), (Some(1), None));
        assert_eq!(
            in_package("/v/site-packages/transformers/trainer.py"),
            "transformers/trainer.py"
        );
        assert_eq!(in_package("/home/me/train.py"), "/home/me/train.py");
    }

    #[test]
    fn the_innermost_frame_of_the_best_rank_is_shown() {
        let text = r#"
text 1 "train.py"
text 2 "/v/site-packages/torch/nn/linear.py"
text 3 "??"
frame 0 file 1 line 1
frame 1 file 2 line 2
frame 2 file 3
stack 0 frame 0
stack 1 frame 1 caller 0
stack 2 frame 2 caller 1
stack 3 frame 1
stack 4 frame 2 caller 3
stack 5 frame 2
owner 0 stack 2
owner 1 stack 4
owner 2 stack 5
"#;
        let recording = recording::text::recording(text).unwrap();
        let source = Source::new(&recording);
        let line = |owner| source.line(OwnerId(owner)).map(|frame| frame.line);
        assert_eq!((line(0), line(1), line(2)), (Some(1), Some(2), None));
        let lines = |owner| -> Vec<u32> {
            source.users_lines(OwnerId(owner)).iter().map(|frame| frame.line).collect()
        };
        assert_eq!((lines(0), lines(1), lines(2)), (vec![1], vec![2], vec![]));
    }
}
