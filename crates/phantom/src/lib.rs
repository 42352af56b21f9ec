//! The phantom GPU: the CUDA libraries that an unmodified PyTorch calls, answered without a card.
//!
//! Loaded in front of everything by `LD_PRELOAD`, it exports the functions in the tables of
//! `cuda-abi`. Loading does nothing: no constructor, no thread, no file; the first CUDA call builds
//! the state. Device memory is address space only, kernels are accepted and not run, and the card's
//! total, context and free memory come from the catalogue in `gpus`.
//!
//! Modules follow the nouns of the C API. Each answer is a plain function; pointers are checked
//! once, in [`ffi`], so the answers see references.

mod arena;
mod blas;
mod busy;
mod capture;
mod cards;
mod config;
mod configuration;
mod context;
mod copies;
mod cudnn;
mod cupti;
mod device;
mod doorway;
mod driver;
mod error;
mod event;
mod export;
mod fat_binary;
mod ffi;
mod fft;
mod fresh;
mod graph;
mod handles;
mod host;
mod ipc;
mod launch;
mod memory;
mod module;
mod nccl;
mod nvml;
mod nvrtc;
mod order;
mod pointer;
mod pool;
mod reach;
mod reads;
mod refuse;
mod shared;
mod solver;
mod sparse;
mod state;
mod status;
mod stream;
mod taint;
mod virtual_memory;
mod visible;
mod workspaces;
