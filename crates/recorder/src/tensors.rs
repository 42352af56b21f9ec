//! How tensors are read: by the attributes that Python code would use.

use std::sync::Mutex;

use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyTuple};

use crate::attribute::Attribute;
use crate::hash::Map;
use crate::lock::lock;

/// Where a tensor's storage lies, and which one it is.
#[derive(Clone, Debug)]
pub(crate) struct Lies {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) storage: usize,
}

/// What a tensor of a class of its own is without it.
#[derive(Clone, Copy)]
enum Below {
    /// An ordinary one: the class leaves functions as they are.
    Ordinary,
    /// The same, while the class's own code calls functions on it.
    InItsCode,
    /// It is made of others.
    Another,
}

pub(crate) struct Tensors {
    class: Py<PyAny>,
    /// Classes of tensors that nobody has made his own.
    plain: Vec<usize>,
    /// `storages.storages`: the parts of a tensor that is not an ordinary one.
    storages: Py<PyAny>,
    strided: Py<PyAny>,
    layout: Attribute,
    is_cuda: Attribute,
    dtype: Attribute,
    shape: Attribute,
    bytes: Attribute,
    node: Attribute,
    gradient: Attribute,
    requires_gradient: Attribute,
    is_view: Attribute,
    address: Attribute,
    elements: Attribute,
    device: Attribute,
    storage: Attribute,
    storage_start: Attribute,
    storage_bytes: Attribute,
    storage_itself: Attribute,
    storage_weakly: Attribute,
    stride: Attribute,
    offset: Attribute,
    version: Attribute,
    is_conjugate: Attribute,
    is_negative: Attribute,
    /// Bytes of an element and whether it has fractions, by its type.
    kinds: Mutex<Map<usize, (u64, bool)>>,
    /// What tensors of other classes are without them.
    below: Mutex<Map<usize, (Py<PyAny>, Below)>>,
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
            layout: Attribute::property(&base, c"layout"),
            is_cuda: Attribute::property(&base, c"is_cuda"),
            dtype: Attribute::property(&base, c"dtype"),
            shape: Attribute::property(&base, c"shape"),
            bytes: Attribute::property(&base, c"nbytes"),
            node: Attribute::property(&base, c"grad_fn"),
            gradient: Attribute::property(&base, c"grad"),
            requires_gradient: Attribute::property(&base, c"requires_grad"),
            is_view: Attribute::method(&base, c"_is_view"),
            address: Attribute::method(&base, c"data_ptr"),
            elements: Attribute::method(&base, c"numel"),
            device: Attribute::method(&base, c"get_device"),
            storage: Attribute::method(&base, c"untyped_storage"),
            storage_start: Attribute::method(&storage_base, c"data_ptr"),
            storage_bytes: Attribute::method(&storage_base, c"nbytes"),
            storage_itself: Attribute::property(&storage_base, c"_cdata"),
            storage_weakly: Attribute::method(&storage_base, c"_weak_ref"),
            stride: Attribute::method(&base, c"stride"),
            offset: Attribute::method(&base, c"storage_offset"),
            version: Attribute::property(&base, c"_version"),
            is_conjugate: Attribute::method(&base, c"is_conj"),
            is_negative: Attribute::method(&base, c"is_neg"),
            kinds: Mutex::default(),
            below: Mutex::default(),
        })
    }

    pub(crate) fn is_tensor(&self, value: &Bound<'_, PyAny>) -> bool {
        // SAFETY: both are types, alive while `self` and `value` are.
        unsafe {
            ffi::PyType_IsSubtype(ffi::Py_TYPE(value.as_ptr()), self.class.as_ptr().cast()) != 0
        }
    }

    pub(crate) fn is_plain(&self, value: &Bound<'_, PyAny>) -> bool {
        self.plain.contains(&(value.get_type_ptr() as usize))
    }

    pub(crate) fn is_strided(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.read(&self.layout, tensor)?.is(&self.strided))
    }

    /// Whether its class is torch's own and its elements lie in one storage.
    pub(crate) fn is_ordinary(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.is_plain(tensor) && self.is_strided(tensor)?)
    }

    /// The code of a class calls functions on tensors that are ordinary ones there.
    pub(crate) fn set_plain_inside(&self, class: &Bound<'_, PyAny>) {
        let found = (class.clone().unbind(), Below::InItsCode);
        lock(&self.below).insert(class.as_ptr() as usize, found);
    }

    /// What a tensor of a class of its own is without it.
    fn class_below(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Below> {
        let key = tensor.get_type_ptr() as usize;
        if let Some((_, below)) = lock(&self.below).get(&key) {
            return Ok(*below);
        }
        let class = tensor.get_type();
        let doorway = tensor.py().import("fathom._doorway.storages")?;
        let leaves = doorway.call_method1("leaves_functions", (&class,))?.is_truthy()?;
        let below = if leaves { Below::Ordinary } else { Below::Another };
        lock(&self.below).insert(key, (class.into_any().unbind(), below));
        Ok(below)
    }

    /// The ordinary tensor that it is, or that it is without its class.
    pub(crate) fn below<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.is_plain(tensor) {
            return Ok(self.is_strided(tensor)?.then(|| tensor.clone()));
        }
        if matches!(self.class_below(tensor)?, Below::Another) {
            return Ok(None);
        }
        let doorway = tensor.py().import("fathom._doorway.storages")?;
        let found = doorway.call_method1("without_class", (tensor,))?;
        Ok((self.is_plain(&found) && self.is_strided(&found)?).then_some(found))
    }

    /// The same, of a tensor whose functions do what they say: not if code of its class's own is to be asked first.
    pub(crate) fn ordinary<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !self.is_plain(tensor) && matches!(self.class_below(tensor)?, Below::InItsCode) {
            let torch = tensor.py().import("torch._C")?;
            if torch.call_method0("_is_torch_function_enabled")?.is_truthy()? {
                return Ok(None);
            }
        }
        self.below(tensor)
    }

    /// What of a tensor lies on the card: itself, or the parts of a sparse, a distributed or a wrapped one.
    pub(crate) fn storages<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        if self.is_ordinary(tensor)? && self.address(tensor)?.is_some() {
            return Ok(vec![tensor.clone()]);
        }
        self.storages.bind(tensor.py()).call1((tensor,))?.extract()
    }

    pub(crate) fn is_cuda(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.read(&self.is_cuda, tensor)?.is_truthy()
    }

    pub(crate) fn is_view(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.read(&self.is_view, tensor)?.is_truthy()
    }

    /// Where it begins; `None` if it has no memory of its own, as what `torch.func` wraps around tensors.
    pub(crate) fn address(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let address = self.told(tensor.py(), self.read(&self.address, tensor))?;
        Ok(address.map(|address| address.extract()).transpose()?.filter(|address| *address != 0))
    }

    pub(crate) fn bytes(&self, tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.read(&self.bytes, tensor)?.extract()
    }

    /// None if it cannot tell, as parameters that are not made yet.
    pub(crate) fn elements(&self, tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
        let elements = self.told(tensor.py(), self.read(&self.elements, tensor))?;
        elements.map_or(Ok(0), |elements| elements.extract())
    }

    /// The card that it lies on, if it is on one.
    pub(crate) fn card(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Option<u16>> {
        let device: i32 = self.read(&self.device, tensor)?.extract()?;
        Ok(u16::try_from(device).ok())
    }

    pub(crate) fn dtype<'py>(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.read(&self.dtype, tensor)
    }

    pub(crate) fn requires_gradient(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.read(&self.requires_gradient, tensor)?.is_truthy()
    }

    /// Python's `None` if there is none.
    pub(crate) fn gradient<'py>(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.read(&self.gradient, tensor)
    }

    /// Where a tensor's storage begins, and its bytes; `None` if it has none of its own.
    pub(crate) fn storage(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Option<(u64, u64)>> {
        let Some(storage) = self.told(tensor.py(), self.read(&self.storage, tensor))? else {
            return Ok(None);
        };
        // SAFETY: `untyped_storage` gives torch's own class of storages, which changes neither.
        let (start, bytes) = unsafe {
            (self.storage_start.plainly_of(&storage), self.storage_bytes.plainly_of(&storage))
        };
        let Some(start) = self.told(tensor.py(), start)? else { return Ok(None) };
        Ok(Some((start.extract()?, bytes?.extract()?)))
    }

    /// The same, and which storage it is.
    pub(crate) fn lies_at(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Lies> {
        let storage = self.read(&self.storage, tensor)?;
        // SAFETY: as above.
        let (start, bytes, own) = unsafe {
            (
                self.storage_start.plainly_of(&storage)?,
                self.storage_bytes.plainly_of(&storage)?,
                self.storage_itself.plainly_of(&storage)?,
            )
        };
        Ok(Lies { start: start.extract()?, bytes: bytes.extract()?, storage: own.extract()? })
    }

    /// The kind, the parts, and whether no element is there twice, of a sparse tensor; `None` for others.
    #[allow(clippy::type_complexity, reason = "three things that go together nowhere else")]
    pub(crate) fn sparse_parts<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Py<PyAny>, Vec<Bound<'py, PyAny>>, bool)>> {
        if !self.is_plain(tensor) {
            return Ok(None);
        }
        let layout = self.read(&self.layout, tensor)?;
        if layout.is(&self.strided) {
            return Ok(None);
        }
        let parts = tensor
            .py()
            .import("fathom._doorway.values.evaluate")?
            .call_method1("parts", (tensor,))?;
        let (parts, is_coalesced): (Vec<Bound<'py, PyAny>>, bool) = parts.extract()?;
        Ok((!parts.is_empty()).then_some((layout.unbind(), parts, is_coalesced)))
    }

    pub(crate) fn size(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
        self.read(&self.shape, tensor)?.extract()
    }

    /// A weak reference to a tensor's storage, which has to be freed by `_free_weak_ref`.
    pub(crate) fn hold_weakly(&self, tensor: &Bound<'_, PyAny>) -> PyResult<usize> {
        let storage = self.read(&self.storage, tensor)?;
        // SAFETY: as above.
        unsafe { self.storage_weakly.plainly_of(&storage)? }.extract()
    }

    /// Sizes, strides and the first element's place in the storage.
    pub(crate) fn lies(&self, tensor: &Bound<'_, PyAny>) -> PyResult<(Vec<i64>, Vec<i64>, i64)> {
        let numbers = |attribute: &Attribute| self.read(attribute, tensor)?.extract();
        Ok((
            numbers(&self.shape)?,
            numbers(&self.stride)?,
            self.read(&self.offset, tensor)?.extract()?,
        ))
    }

    /// Its type of numbers, how many bytes one has, and whether it has fractions.
    pub(crate) fn kind(&self, tensor: &Bound<'_, PyAny>) -> PyResult<(Py<PyAny>, u64, bool)> {
        let dtype = self.dtype(tensor)?;
        let key = dtype.as_ptr() as usize;
        let known = lock(&self.kinds).get(&key).copied();
        let (bytes, is_fraction) = match known {
            Some(known) => known,
            None => {
                let has = |name: &str| dtype.getattr(name)?.is_truthy();
                let found = (
                    dtype.getattr("itemsize")?.extract()?,
                    has("is_floating_point")? || has("is_complex")?,
                );
                lock(&self.kinds).insert(key, found);
                found
            }
        };
        Ok((dtype.unbind(), bytes, is_fraction))
    }

    /// Whether its elements are conjugated, or negated, when they are read.
    pub(crate) fn is_lazy(&self, tensor: &Bound<'_, PyAny>) -> PyResult<(bool, bool)> {
        let read = |attribute: &Attribute| self.read(attribute, tensor)?.is_truthy();
        Ok((read(&self.is_conjugate)?, read(&self.is_negative)?))
    }

    /// How often its storage was written to. In inference mode nobody counts: an error.
    pub(crate) fn version(&self, tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.read(&self.version, tensor)?.extract()
    }

    /// Whether a function made it. A view whose base has changed in place cannot say, and was made.
    pub(crate) fn is_made(&self, tensor: &Bound<'_, PyAny>) -> bool {
        self.read(&self.node, tensor).map_or(true, |node| !node.is_none())
    }

    /// Its class of numbers and its sizes; a nested one has no sizes.
    pub(crate) fn form<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyTuple>)>> {
        let Some(shape) = self.told(tensor.py(), self.read(&self.shape, tensor))? else {
            return Ok(None);
        };
        Ok(Some((self.dtype(tensor)?, shape.cast_into::<PyTuple>()?)))
    }

    /// What a tensor says of itself; `None` if it refuses to.
    fn told<'py>(
        &self,
        py: Python<'py>,
        said: PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match said {
            Ok(said) => Ok(Some(said)),
            Err(error) if error.is_instance_of::<PyException>(py) => Ok(None),
            Err(error) => Err(error),
        }
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
