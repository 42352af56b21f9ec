//! Names of phases and categories, in texts and reports; their order is their number in files.

use crate::event::{Category, Phase};

macro_rules! named {
    ($type:ident: $($variant:ident = $name:literal,)*) => {
        impl $type {
            /// Every value, in order.
            pub const ALL: &[$type] = &[$($type::$variant),*];

            /// The name in texts and reports.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)*
                }
            }

            /// The value of a name.
            pub fn from_name(name: &str) -> Option<$type> {
                match name {
                    $($name => Some($type::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

named! { Phase:
    Construction = "construction",
    Forward = "forward",
    Backward = "backward",
    BeforeOptimizer = "before_optimizer",
    Optimizer = "optimizer",
    Evaluation = "evaluation",
    Saving = "saving",
    AfterTraining = "after_training",
    Inference = "inference",
}

named! { Category:
    Unknown = "unknown",
    Weights = "weights",
    Gradients = "gradients",
    Optimizer = "optimizer",
    Activations = "activations",
    Inputs = "inputs",
    Buffers = "buffers",
    ModelCopies = "model_copies",
    Casts = "casts",
    Temporaries = "temporaries",
    Workspace = "workspace",
    Unsharded = "unsharded_weights",
    Communication = "communication",
    KvCache = "kv_cache",
}
