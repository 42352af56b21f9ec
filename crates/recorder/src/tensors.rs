//! How tensors are read: by the attributes that Python code would use.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyTuple};

use crate::attribute::Attribute;

pub(crate) struct Tensors {
    class: Py<PyAny>,
    /// Classes of tensors that nobody has made his own.
    plain: Vec<usize>,
    /// `storages.storages`: the parts of a tensor that is not an ordinary one.
    storages: Py<PyAny>,
    strided: Py<PyAny>,
    int64: Py<PyAny>,
    layout: Attribute,
    is_cuda: Attribute,
    dtype: Attribute,
    shape: Attribute,
    dimensions: Attribute,
    bytes: Attribute,
    node: Attribute,
    gradient: Attribute,
    is_view: Attribute,
    address: Attribute,
    elements: Attribute,
    device: Attribute,
    storage: Attribute,
    storage_start: Attribute,
    storage_bytes: Attribute,
}

impl Tensors {
    pub(crate) fn new(
        py: Python<'_>,
        plain: &Bound<'_, PyFrozenSet>,
        storages: Py<PyAny>,
    ) -> PyResult<Tensors> {
        let torch = py.import("torch")?;
        let inner = torch.getattr("_C")?;
        let base = inner.getattr("TensorBase")?.cast_into()?;
        let storage_base = inner.getattr("StorageBase")?.cast_into()?;
        Ok(Tensors {
            class: torch.getattr("Tensor")?.unbind(),
            plain: plain.iter().map(|class| class.as_ptr() as usize).collect(),
            storages,
            strided: torch.getattr("strided")?.unbind(),
            int64: torch.getattr("int64")?.unbind(),
            layout: Attribute::property(&base, c"layout"),
            is_cuda: Attribute::property(&base, c"is_cuda"),
            dtype: Attribute::property(&base, c"dtype"),
            shape: Attribute::property(&base, c"shape"),
            dimensions: Attribute::property(&base, c"ndim"),
            bytes: Attribute::property(&base, c"nbytes"),
            node: Attribute::property(&base, c"grad_fn"),
            gradient: Attribute::property(&base, c"grad"),
            is_view: Attribute::method(&base, c"_is_view"),
            address: Attribute::method(&base, c"data_ptr"),
            elements: Attribute::method(&base, c"numel"),
            device: Attribute::method(&base, c"get_device"),
            storage: Attribute::method(&base, c"untyped_storage"),
            storage_start: Attribute::method(&storage_base, c"data_ptr"),
            storage_bytes: Attribute::method(&storage_base, c"nbytes"),
        })
    }

    pub(crate) fn is_tensor(&self, value: &Bound<'_, PyAny>) -> bool {
        // SAFETY: both are types, alive while `self` and `value` are.
        unsafe {
            ffi::PyType_IsSubtype(ffi::Py_TYPE(value.as_ptr()), self.class.as_ptr().cast()) != 0
        }
    }

    fn is_plain(&self, value: &Bound<'_, PyAny>) -> bool {
        self.plain.contains(&(value.get_type_ptr() as usize))
    }

    /// Whether it is of torch's own class of tensors, and no parameter.
    pub(crate) fn is_bare(&self, value: &Bound<'_, PyAny>) -> bool {
        std::ptr::eq(value.get_type_ptr().cast(), self.class.as_ptr())
    }

    pub(crate) fn is_strided(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.read(&self.layout, tensor)?.is(&self.strided))
    }

    /// Whether its class is torch's own and its elements lie in one storage.
    pub(crate) fn is_ordinary(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.is_plain(tensor) && self.is_strided(tensor)?)
    }

    /// What of a tensor lies on the card: itself, or the parts of a sparse or a distributed one.
    pub(crate) fn storages<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        if self.is_ordinary(tensor)? {
            return Ok(vec![tensor.clone()]);
        }
        self.storages.bind(tensor.py()).call1((tensor,))?.extract()
    }

    /// Whether it is one whole number on the card, of 64 bits.
    pub(crate) fn is_count(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.is_plain(value)
            && self.dtype(value)?.is(&self.int64)
            && self.is_cuda(value)?
            && self.read(&self.dimensions, value)?.extract::<usize>()? == 0)
    }

    pub(crate) fn is_cuda(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.read(&self.is_cuda, tensor)?.is_truthy()
    }

    pub(crate) fn is_view(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.read(&self.is_view, tensor)?.is_truthy()
    }

    pub(crate) fn address(&self, tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.read(&self.address, tensor)?.extract()
    }

    pub(crate) fn bytes(&self, tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.read(&self.bytes, tensor)?.extract()
    }

    pub(crate) fn elements(&self, tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.read(&self.elements, tensor)?.extract()
    }

    /// The card that it lies on, if it is on one.
    pub(crate) fn card(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Option<u16>> {
        let device: i32 = self.read(&self.device, tensor)?.extract()?;
        Ok(u16::try_from(device).ok())
    }

    pub(crate) fn dtype<'py>(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.read(&self.dtype, tensor)
    }

    /// Python's `None` if there is none.
    pub(crate) fn gradient<'py>(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.read(&self.gradient, tensor)
    }

    /// Where a tensor's storage begins, and its bytes.
    pub(crate) fn storage(&self, tensor: &Bound<'_, PyAny>) -> PyResult<(u64, u64)> {
        let storage = self.read(&self.storage, tensor)?;
        // SAFETY: `untyped_storage` gives torch's own class of storages, which changes neither.
        let (start, bytes) = unsafe {
            (self.storage_start.plainly_of(&storage)?, self.storage_bytes.plainly_of(&storage)?)
        };
        Ok((start.extract()?, bytes.extract()?))
    }

    /// Whether a function made it. A view whose base has changed in place cannot say, and was made.
    pub(crate) fn is_made(&self, tensor: &Bound<'_, PyAny>) -> bool {
        self.read(&self.node, tensor).map_or(true, |node| !node.is_none())
    }

    /// Its class of numbers and its sizes.
    pub(crate) fn form<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let shape = self.read(&self.shape, tensor)?.cast_into::<PyTuple>()?;
        Ok((self.dtype(tensor)?, shape))
    }

    fn read<'py>(
        &self,
        attribute: &Attribute,
        tensor: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.is_plain(tensor) {
            // SAFETY: these classes are torch's own, and have the attributes of their base.
            return unsafe { attribute.plainly_of(tensor) };
        }
        attribute.of(tensor)
    }
}
