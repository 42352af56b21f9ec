//! Whose a file is, by its path.

/// Code that packages write while they run has files that are called so, in any folder.
const WRITTEN: [&str; 1] = ["torch_geometric."];

/// Tells our own files and those of libraries from the user's.
#[derive(Clone, Debug)]
pub struct Paths {
    /// What paths of our own package begin with.
    pub own: String,
    /// The folder of Python's own library.
    pub standard: String,
}

impl Paths {
    /// Whether a file is of our own package.
    pub fn is_ours(&self, path: &str) -> bool {
        path.starts_with(&self.own)
    }

    /// Whether a file is not the user's: installed, of Python itself, generated, or ours.
    pub fn is_library(&self, path: &str) -> bool {
        let is_installed = path.contains("site-packages") || path.contains("dist-packages");
        let name = path.rsplit('/').next().unwrap_or_default();
        is_installed
            || WRITTEN.iter().any(|package| name.starts_with(package))
            || path.starts_with('<')
            || self.is_ours(path)
            || path.starts_with(&self.standard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_the_users() {
        let paths = Paths { own: "/opt/fathom/".into(), standard: "/usr/lib/python3.12".into() };
        assert!(paths.is_ours("/opt/fathom/_doorway/watch.py"));
        for library in [
            "/opt/fathom/_doorway/watch.py",
            "/home/me/.venv/lib/python3.12/site-packages/torch/nn/modules/linear.py",
            "/usr/lib/python3/dist-packages/numpy/core.py",
            "/usr/lib/python3.12/runpy.py",
            "<string>",
            "/tmp/torch_geometric.nn.conv.gat_conv_GATConv_propagate_ymq_anjx.py",
        ] {
            assert!(paths.is_library(library), "{library}");
        }
        assert!(!paths.is_library("/home/me/train.py"));
        assert!(!paths.is_library("/home/me/torch_geometric_train.py"));
    }
}
