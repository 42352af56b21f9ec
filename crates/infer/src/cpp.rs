//! What the name of a C++ function says: the node of a backward pass, the operator, a library's workspace.

use recording::{Text, TextId};

use crate::rules::{CPP, LIBRARIES, Says};

/// One name, read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Name {
    /// `AddmmBackward0` of `torch::autograd::generated::AddmmBackward0::apply(…)`.
    pub(crate) node: TextId,
    /// `add` of `at::_ops::add_Tensor::call(…)`.
    pub(crate) operator: TextId,
    /// The storage of a tensor is allocated.
    pub(crate) makes_tensor: bool,
    /// A library is called that has workspaces.
    pub(crate) calls_library: bool,
    /// It is C++ at all: Python's own functions and names without symbols say nothing.
    pub(crate) is_cpp: bool,
    pub(crate) says: Option<Says>,
}

/// Where storages of tensors come from; libraries ask the allocator itself for their workspaces.
const TENSORS: [&str; 4] =
    ["at::detail::empty_", "at::native::resize_", "StorageImpl::", "resize_bytes_cuda"];

pub(crate) fn read(name: &str, texts: &mut Text) -> Name {
    let says = CPP.iter().find(|(part, _)| name.contains(part)).map(|(_, says)| *says);
    Name {
        node: node(name).map_or(TextId(0), |node| texts.intern(node)),
        operator: operator(name).map_or(TextId(0), |operator| texts.intern(operator)),
        calls_library: LIBRARIES.iter().any(|part| name.contains(part)),
        is_cpp: name.contains("::"),
        makes_tensor: TENSORS.iter().any(|part| name.contains(part)),
        says,
    }
}

/// The class whose `apply` this is, if it is a node's.
fn node(name: &str) -> Option<&str> {
    let (class, _) = name.split_once("::apply(")?;
    let class = class.rsplit("::").next()?;
    let is_node = class.contains("Backward") || class == "AccumulateGrad";
    is_node.then_some(class)
}

/// Ends of names that tell the overloads of an operator apart, beside those in capitals.
const OVERLOADS: [&str; 8] =
    ["_IntList", "_dim", "_memory_format", "_names", "_generator", "_low", "_start_step", "_start"];

/// The operator without its overload: `sum_dim_IntList` is `sum`.
fn operator(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("at::_ops::")?;
    let (operator, function) = rest.split_once("::")?;
    if !function.starts_with("call(") {
        return None;
    }
    if operator.starts_with("to_dtype") || operator == "to_device" || operator == "_to_copy" {
        return Some("to");
    }
    let plain = OVERLOADS
        .iter()
        .fold(operator, |name, overload| name.strip_suffix(overload).unwrap_or(name));
    let overload = plain.match_indices('_').find(|(at, _)| {
        plain.get(at + 1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    });
    overload.map_or(Some(plain), |(at, _)| plain.get(..at))
}

#[cfg(test)]
mod tests {
    use recording::Category;

    use super::*;

    #[test]
    fn nodes_and_operators_are_read_off_names() {
        let nodes = [
            "torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor>&&)",
            "torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)",
            "torch::autograd::Node::apply(std::vector<at::Tensor>&&)",
        ];
        assert_eq!(nodes.map(node), [Some("AddmmBackward0"), Some("AccumulateGrad"), None]);
        let operators = [
            "at::_ops::add_Tensor::call(at::Tensor const&)",
            "at::_ops::sum_dim_IntList::call(at::Tensor const&)",
            "at::_ops::linear::call(at::Tensor const&)",
            "at::_ops::to_dtype_layout::call(at::Tensor const&)",
            "at::_ops::linear::redispatch(c10::DispatchKeySet)",
        ];
        let read = [Some("add"), Some("sum"), Some("linear"), Some("to"), None];
        assert_eq!(operators.map(operator), read);
    }

    #[test]
    fn workspaces_are_said_by_who_allocates_them() {
        let mut texts = Text::default();
        let name = read("at::cuda::allocateCUDABlasWorkspace(unsigned long)", &mut texts);
        assert_eq!(name.says, Some(Says::Is(Category::Workspace, "cuBLAS workspace")));
        assert!(!name.makes_tensor);
        assert!(read("at::detail::empty_cuda(c10::ArrayRef<long>)", &mut texts).makes_tensor);
    }
}
