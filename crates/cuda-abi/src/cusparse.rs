//! cuSPARSE and cuSPARSELt: sparse products; work areas are modelled, block-sparse and sparse-sparse products refused.

/// Hands the rows of `libcusparse` to `$then!`.
#[macro_export]
macro_rules! cusparse {
    ($then:ident) => {
        $then! { cusparse;
            answered {
                capture::set_library_stream => fn cusparseSetStream(library: Sparse, stream: Stream);
                handles::create => fn cusparseCreate(out: *mut Sparse);
                handles::create => fn cusparseCreateBsrsm2Info(out: *mut BsrsmInfo);
                handles::create => fn cusparseCreateBsrsv2Info(out: *mut BsrsvInfo);
                sparse::create_matrix => fn cusparseCreateCoo(out: *mut SparseMatrix, rows: i64, columns: i64, count: i64);
                handles::create => fn cusparseCreateDnVec(out: *mut DenseVector);
                handles::create => fn cusparseCreateMatDescr(out: *mut MatrixDescriptor);
                handles::create => fn cusparseSpGEMM_createDescr(out: *mut GemmDescriptor);
                handles::create => fn cusparseSpSM_createDescr(out: *mut SmDescriptor);
                handles::create => fn cusparseSpSV_createDescr(out: *mut SvDescriptor);
                handles::create => fn cusparseCreateDnMat(out: *mut DenseMatrix);
                sparse::create_matrix => fn cusparseCreateCsr(out: *mut SparseMatrix, rows: i64, columns: i64, count: i64);
                sparse::destroy_matrix => fn cusparseDestroySpMat(matrix: Ended<SparseMatrix>);
                sparse::size => fn cusparseSpMatGetSize(matrix: SparseMatrix, rows: *mut i64, columns: *mut i64, count: *mut i64);
                sparse::work_11 => fn cusparseSDDMM_bufferSize(a1: Sparse, a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, out: *mut usize);
                sparse::work_11 => fn cusparseSpMM_bufferSize(a1: Sparse, a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, out: *mut usize);
                sparse::work_10 => fn cusparseSpMV_bufferSize(a1: Sparse, a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, out: *mut usize);
                sparse::work_11 => fn cusparseSpSM_bufferSize(a1: Sparse, a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, out: *mut usize);
                sparse::work_10 => fn cusparseSpSV_bufferSize(a1: Sparse, a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, out: *mut usize);
                sparse::sort_work => fn cusparseXcoosort_bufferSizeExt(handle: Sparse, m: c_int, n: c_int, count: c_int, rows: Address, columns: Address, out: *mut usize);
                sparse::sort_work => fn cusparseXcsrsort_bufferSizeExt(handle: Sparse, m: c_int, n: c_int, count: c_int, rows: Address, columns: Address, out: *mut usize);
            }
            values {
                error::sparse_text => fn cusparseGetErrorString(code: c_int) -> *const c_char;
            }
            silent {
                () {
                    cusparseLtMatDescriptorDestroy, cusparseLtMatmulPlanDestroy,
                }
                (handle: Ended<Sparse>) {
                    cusparseDestroy,
                }
                (info: Ended<BsrsmInfo>) {
                    cusparseDestroyBsrsm2Info,
                }
                (info: Ended<BsrsvInfo>) {
                    cusparseDestroyBsrsv2Info,
                }
                (matrix: Ended<DenseMatrix>) {
                    cusparseDestroyDnMat,
                }
                (vector: Ended<DenseVector>) {
                    cusparseDestroyDnVec,
                }
                (descriptor: Ended<MatrixDescriptor>) {
                    cusparseDestroyMatDescr,
                }
                (descriptor: Ended<GemmDescriptor>) {
                    cusparseSpGEMM_destroyDescr,
                }
                (descriptor: Ended<SmDescriptor>) {
                    cusparseSpSM_destroyDescr,
                }
                (descriptor: Ended<SvDescriptor>) {
                    cusparseSpSV_destroyDescr,
                }
                (matrix: SparseMatrix) {
                    cusparseCsrSetPointers, cusparseCsrSetStridedBatch,
                    cusparseSpMatSetAttribute,
                }
                (matrix: DenseMatrix) {
                    cusparseDnMatSetStridedBatch,
                }
                (descriptor: MatrixDescriptor) {
                    cusparseSetMatDiagType, cusparseSetMatFillMode, cusparseSetMatIndexBase,
                    cusparseSetMatType,
                }
                (handle: Sparse, a_way: c_int, b_way: c_int, alpha: Address, a: DenseMatrix, b: DenseMatrix) {
                    cusparseSDDMM, cusparseSDDMM_preprocess,
                }
                (handle: Sparse, a_way: c_int, b_way: c_int, alpha: Address, a: SparseMatrix, b: DenseMatrix) {
                    cusparseSpMM, cusparseSpSM_analysis, cusparseSpSM_solve,
                }
                (handle: Sparse, way: c_int, alpha: Address, matrix: SparseMatrix, vector: DenseVector) {
                    cusparseSpMV, cusparseSpSV_analysis, cusparseSpSV_solve,
                }
                (handle: Sparse) {
                    cusparseCreateIdentityPermutation, cusparseSetPointerMode, cusparseXcoo2csr,
                    cusparseXcoosortByRow, cusparseXcsrsort,
                }
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
