//! cuFile: GPUDirect storage, which the phantom does not have.

/// Hands the rows of `libcufile` to `$then!`.
#[macro_export]
macro_rules! cufile {
    ($then:ident) => {
        $then! { cufile;
            answered {}
            values {}
            silent {}
            refused {
                cuFileBufDeregister, cuFileBufRegister, cuFileHandleDeregister,
                cuFileHandleRegister, cuFileRead, cuFileWrite,
            }
        }
    };
}
