//! cuSPARSE and cuSPARSELt: sparse products; work areas are modelled, block-sparse and sparse-sparse products refused.

/// Hands the rows of `libcusparse` to `$then!`.
#[macro_export]
macro_rules! cusparse {
    ($then:ident) => {
        $then! { cusparse;
            answered {
                sparse::create => fn cusparseCreate(out: *mut Handle);
                sparse::create => fn cusparseCreateBsrsm2Info(out: *mut Handle);
                sparse::create => fn cusparseCreateBsrsv2Info(out: *mut Handle);
                sparse::create => fn cusparseCreateCoo(out: *mut Handle);
                sparse::create => fn cusparseCreateDnVec(out: *mut Handle);
                sparse::create => fn cusparseCreateMatDescr(out: *mut Handle);
                sparse::create => fn cusparseSpGEMM_createDescr(out: *mut Handle);
                sparse::create => fn cusparseSpSM_createDescr(out: *mut Handle);
                sparse::create => fn cusparseSpSV_createDescr(out: *mut Handle);
                sparse::create => fn cusparseCreateDnMat(out: *mut Handle);
                sparse::create_csr => fn cusparseCreateCsr(out: *mut Handle, rows: i64, columns: i64, count: i64);
                sparse::size => fn cusparseSpMatGetSize(matrix: Handle, rows: *mut i64, columns: *mut i64, count: *mut i64);
                sparse::work_11 => fn cusparseSDDMM_bufferSize(a1: Handle, a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, out: *mut usize);
                sparse::work_11 => fn cusparseSpMM_bufferSize(a1: Handle, a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, out: *mut usize);
                sparse::work_10 => fn cusparseSpMV_bufferSize(a1: Handle, a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, out: *mut usize);
                sparse::work_11 => fn cusparseSpSM_bufferSize(a1: Handle, a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, out: *mut usize);
                sparse::work_10 => fn cusparseSpSV_bufferSize(a1: Handle, a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, out: *mut usize);
                sparse::sort_work => fn cusparseXcoosort_bufferSizeExt(handle: Handle, m: c_int, n: c_int, count: c_int, rows: Address, columns: Address, out: *mut usize);
                sparse::sort_work => fn cusparseXcsrsort_bufferSizeExt(handle: Handle, m: c_int, n: c_int, count: c_int, rows: Address, columns: Address, out: *mut usize);
            }
            values {
                error::sparse_text => fn cusparseGetErrorString(code: c_int) -> *const c_char;
            }
            silent {
                cusparseCreateIdentityPermutation, cusparseCsrSetPointers,
                cusparseCsrSetStridedBatch, cusparseDestroy, cusparseDestroyBsrsm2Info,
                cusparseDestroyBsrsv2Info, cusparseDestroyDnMat, cusparseDestroyDnVec,
                cusparseDestroyMatDescr, cusparseDestroySpMat, cusparseDnMatSetStridedBatch,
                cusparseLtMatDescriptorDestroy, cusparseLtMatmulPlanDestroy, cusparseSDDMM,
                cusparseSDDMM_preprocess, cusparseSetMatDiagType, cusparseSetMatFillMode,
                cusparseSetMatIndexBase, cusparseSetMatType, cusparseSetPointerMode,
                cusparseSetStream, cusparseSpGEMM_destroyDescr, cusparseSpMM, cusparseSpMV,
                cusparseSpMatSetAttribute, cusparseSpSM_analysis, cusparseSpSM_destroyDescr,
                cusparseSpSM_solve, cusparseSpSV_analysis, cusparseSpSV_destroyDescr,
                cusparseSpSV_solve, cusparseXcoo2csr, cusparseXcoosortByRow, cusparseXcsrsort,
            }
            refused {
                cusparseCbsrmm, cusparseCbsrmv, cusparseCbsrsm2_analysis,
                cusparseCbsrsm2_bufferSize, cusparseCbsrsm2_solve, cusparseCbsrsv2_analysis,
                cusparseCbsrsv2_bufferSize, cusparseCbsrsv2_solve, cusparseCcsrgeam2,
                cusparseCcsrgeam2_bufferSizeExt, cusparseDbsrmm, cusparseDbsrmv,
                cusparseDbsrsm2_analysis, cusparseDbsrsm2_bufferSize, cusparseDbsrsm2_solve,
                cusparseDbsrsv2_analysis, cusparseDbsrsv2_bufferSize, cusparseDbsrsv2_solve,
                cusparseDcsrgeam2, cusparseDcsrgeam2_bufferSizeExt,
                cusparseLtDenseDescriptorInit, cusparseLtInit, cusparseLtMatmul,
                cusparseLtMatmulAlgGetAttribute, cusparseLtMatmulAlgSelectionInit,
                cusparseLtMatmulAlgSetAttribute, cusparseLtMatmulDescSetAttribute,
                cusparseLtMatmulDescriptorInit, cusparseLtMatmulGetWorkspace,
                cusparseLtMatmulPlanInit, cusparseLtMatmulSearch, cusparseLtSpMMACompress2,
                cusparseLtSpMMACompressedSize2, cusparseLtStructuredDescriptorInit,
                cusparseSbsrmm, cusparseSbsrmv, cusparseSbsrsm2_analysis,
                cusparseSbsrsm2_bufferSize, cusparseSbsrsm2_solve, cusparseSbsrsv2_analysis,
                cusparseSbsrsv2_bufferSize, cusparseSbsrsv2_solve, cusparseScsrgeam2,
                cusparseScsrgeam2_bufferSizeExt, cusparseSpGEMM_compute, cusparseSpGEMM_copy,
                cusparseSpGEMM_workEstimation, cusparseXbsrsm2_zeroPivot,
                cusparseXbsrsv2_zeroPivot, cusparseXcsrgeam2Nnz, cusparseZbsrmm, cusparseZbsrmv,
                cusparseZbsrsm2_analysis, cusparseZbsrsm2_bufferSize, cusparseZbsrsm2_solve,
                cusparseZbsrsv2_analysis, cusparseZbsrsv2_bufferSize, cusparseZbsrsv2_solve,
                cusparseZcsrgeam2, cusparseZcsrgeam2_bufferSizeExt,
            }
        }
    };
}
