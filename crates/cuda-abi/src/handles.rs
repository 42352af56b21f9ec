//! Handles by what they stand for. A row of a table names the kind of handle that a function takes;
//! the phantom checks that it gave out such a handle and that it is still alive.

use crate::types::Handle;

/// A handle that its function brings to an end.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Ended<K>(pub K);

/// A handle that may be null.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Optional<K>(pub K);

/// A type of handles.
pub trait OfKind {
    /// What they stand for.
    const KIND: Kind;
    /// As a plain handle.
    fn handle(self) -> Handle;
}

/// Calls `$then!` with the names of all types of handles.
#[macro_export]
macro_rules! every_handle {
    ($then:ident) => {
        $then! {
            // Runtime and driver.
            Stream, Event, Graph, GraphExec, GraphNode, UserObject, Module, Kernel, LinkState, LogCallback,
            // cuBLAS; the last four are cuBLASLt's descriptors.
            Blas, BlasLt, MatmulDescriptor, MatrixLayout, MatmulPreference, TransformDescriptor,
            // cuDNN.
            Cudnn, BackendDescriptor, TensorDescriptor, FilterDescriptor, ConvolutionDescriptor,
            PoolingDescriptor, ActivationDescriptor, DropoutDescriptor, TransformerDescriptor,
            CtcDescriptor, RnnDescriptor, RnnDataDescriptor,
            // cuSOLVER.
            Solver, GesvdjInfo, SyevjInfo, SolverParameters,
            // cuSPARSE.
            Sparse, SparseMatrix, DenseMatrix, DenseVector, MatrixDescriptor, BsrsmInfo, BsrsvInfo,
            GemmDescriptor, SmDescriptor, SvDescriptor,
            // NVRTC, NCCL, CUPTI.
            Program, Communicator, Registration, Subscriber,
        }
    };
}

macro_rules! types {
    ($($name:ident,)*) => {
        /// What a handle stands for.
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            /// Not given out, or at its end.
            None = 0,
            $($name,)*
        }

        $(
            #[doc = concat!("A handle that must be a `", stringify!($name), "`.")]
            #[repr(transparent)]
            #[derive(Clone, Copy, Debug)]
            pub struct $name(pub usize);

            impl OfKind for $name {
                const KIND: Kind = Kind::$name;
                fn handle(self) -> Handle {
                    Handle(self.0)
                }
            }
        )*
    };
}

every_handle!(types);
