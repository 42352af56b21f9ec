//! cuBLAS and cuBLASLt: matrix products the phantom accepts and does not do.

/// Hands the rows of `libcublas` to `$then!`.
#[macro_export]
macro_rules! cublas {
    ($then:ident) => {
        $then! { cublas;
            answered {
                capture::set_library_stream => fn cublasSetStream_v2(library: Blas, stream: Stream);
                blas::batched_qr => fn cublasSgeqrfBatched(handle: Blas, m: c_int, n: c_int, a: Address, lda: c_int, tau: Address, info: *mut c_int);
                blas::batched_solve => fn cublasSgetrsBatched(handle: Blas, trans: c_int, n: c_int, columns: c_int, a: Address, lda: c_int, pivots: Address, b: Address, ldb: c_int, info: *mut c_int);
                blas::batched_least_squares => fn cublasSgelsBatched(handle: Blas, trans: c_int, m: c_int, n: c_int, columns: c_int, a: Address, lda: c_int, c: Address, ldc: c_int, info: *mut c_int);
                blas::batched_qr => fn cublasDgeqrfBatched(handle: Blas, m: c_int, n: c_int, a: Address, lda: c_int, tau: Address, info: *mut c_int);
                blas::batched_solve => fn cublasDgetrsBatched(handle: Blas, trans: c_int, n: c_int, columns: c_int, a: Address, lda: c_int, pivots: Address, b: Address, ldb: c_int, info: *mut c_int);
                blas::batched_least_squares => fn cublasDgelsBatched(handle: Blas, trans: c_int, m: c_int, n: c_int, columns: c_int, a: Address, lda: c_int, c: Address, ldc: c_int, info: *mut c_int);
                blas::batched_qr => fn cublasCgeqrfBatched(handle: Blas, m: c_int, n: c_int, a: Address, lda: c_int, tau: Address, info: *mut c_int);
                blas::batched_solve => fn cublasCgetrsBatched(handle: Blas, trans: c_int, n: c_int, columns: c_int, a: Address, lda: c_int, pivots: Address, b: Address, ldb: c_int, info: *mut c_int);
                blas::batched_least_squares => fn cublasCgelsBatched(handle: Blas, trans: c_int, m: c_int, n: c_int, columns: c_int, a: Address, lda: c_int, c: Address, ldc: c_int, info: *mut c_int);
                blas::batched_qr => fn cublasZgeqrfBatched(handle: Blas, m: c_int, n: c_int, a: Address, lda: c_int, tau: Address, info: *mut c_int);
                blas::batched_solve => fn cublasZgetrsBatched(handle: Blas, trans: c_int, n: c_int, columns: c_int, a: Address, lda: c_int, pivots: Address, b: Address, ldb: c_int, info: *mut c_int);
                blas::batched_least_squares => fn cublasZgelsBatched(handle: Blas, trans: c_int, m: c_int, n: c_int, columns: c_int, a: Address, lda: c_int, c: Address, ldc: c_int, info: *mut c_int);
                blas::set_workspace => fn cublasSetWorkspace_v2(handle: Blas, workspace: Address, size: usize);
                blas::lt_matmul => fn cublasLtMatmul(handle: BlasLt, operation: MatmulDescriptor, alpha: Handle, a: Address, a_layout: MatrixLayout, b: Address, b_layout: MatrixLayout, beta: Handle, c: Address, c_layout: Optional<MatrixLayout>, d: Address, d_layout: MatrixLayout, algorithm: Handle, workspace: Address, size: usize, stream: Stream);
                handles::create => fn cublasCreate_v2(out: *mut Blas);
                blas::math_mode => fn cublasGetMathMode(handle: Blas, out: *mut c_int);
                blas::pointer_mode => fn cublasGetPointerMode_v2(handle: Blas, out: *mut c_int);
                blas::version => fn cublasGetVersion_v2(handle: Blas, out: *mut c_int);
                blas::property => fn cublasGetProperty(kind: c_int, out: *mut c_int);
                handles::create => fn cublasLtCreate(out: *mut BlasLt);
                blas::property => fn cublasLtGetProperty(kind: c_int, out: *mut c_int);
                handles::create => fn cublasLtMatmulDescCreate(out: *mut MatmulDescriptor);
                handles::create => fn cublasLtMatrixLayoutCreate(out: *mut MatrixLayout);
                handles::create => fn cublasLtGroupedMatrixLayoutCreate(out: *mut MatrixLayout);
                handles::create => fn cublasLtMatmulPreferenceCreate(out: *mut MatmulPreference);
                handles::create => fn cublasLtMatrixTransformDescCreate(out: *mut TransformDescriptor);
                blas::init => fn cublasLtMatmulDescInit_internal(place: *mut MatmulDescriptor, size: usize);
                blas::init => fn cublasLtMatmulPreferenceInit_internal(place: *mut MatmulPreference, size: usize);
                blas::init => fn cublasLtMatrixLayoutInit_internal(place: *mut MatrixLayout, size: usize);
                blas::init => fn cublasLtMatrixTransformDescInit_internal(place: *mut TransformDescriptor, size: usize);
                blas::heuristic => fn cublasLtMatmulAlgoGetHeuristic(handle: BlasLt, operation: MatmulDescriptor, a: MatrixLayout, b: MatrixLayout, c: Optional<MatrixLayout>, d: MatrixLayout, preference: Optional<MatmulPreference>, wanted: c_int, results: *mut MatmulHeuristic, found: *mut c_int);
                blas::check => fn cublasLtMatmulAlgoCheck(handle: BlasLt, operation: MatmulDescriptor, a: MatrixLayout, b: MatrixLayout, c: Optional<MatrixLayout>, d: MatrixLayout, algorithm: Handle, result: *mut MatmulHeuristic);
                blas::attribute => fn cublasLtMatmulAlgoConfigGetAttribute(algorithm: NonNull, attribute: c_int, out: *mut c_void, size: usize, written: *mut usize);
                blas::attribute => fn cublasLtMatmulDescGetAttribute(description: MatmulDescriptor, attribute: c_int, out: *mut c_void, size: usize, written: *mut usize);
                blas::attribute => fn cublasLtMatrixLayoutGetAttribute(layout: MatrixLayout, attribute: c_int, out: *mut c_void, size: usize, written: *mut usize);
                blas::attribute => fn cublasLtMatrixTransformDescGetAttribute(description: TransformDescriptor, attribute: c_int, out: *mut c_void, size: usize, written: *mut usize);
            }
            values {
                blas::lt_version => fn cublasLtGetVersion() -> usize;
                blas::lt_version => fn cublasLtGetCudartVersion() -> usize;
                blas::status_name => fn cublasGetStatusName(code: c_int) -> *const c_char;
                blas::status_name => fn cublasGetStatusString(code: c_int) -> *const c_char;
            }
            silent {
                () {
                    cublasGetMatrixAsync, cublasGetVectorAsync,
                    cublasLtHeuristicsCacheSetCapacity, cublasLtLoggerSetLevel,
                    cublasLtLoggerSetMask, cublasLtMatmulAlgoConfigSetAttribute,
                    cublasSetMatrixAsync, cublasSetVectorAsync,
                }
                (handle: Blas) {
                    cublasCaxpy_v2, cublasCcopy_v2, cublasCdotc_v2, cublasCdotu_v2,
                    cublasCgemmBatched, cublasCgemmStridedBatched, cublasCgemm_v2,
                    cublasCgemv_v2, cublasCgerc_v2, cublasCgeru_v2, cublasCgetrfBatched,
                    cublasChemm_v2, cublasChemv_v2, cublasCher2_v2, cublasCher2k_v2,
                    cublasCher_v2, cublasCherk_v2, cublasCrot_v2, cublasCrotg_v2,
                    cublasCscal_v2, cublasCsrot_v2, cublasCsscal_v2, cublasCswap_v2,
                    cublasCsymm_v2, cublasCsymv_v2, cublasCsyr2_v2, cublasCsyr2k_v2,
                    cublasCsyr_v2, cublasCsyrk_v2, cublasCtrmm_v2, cublasCtrmv_v2,
                    cublasCtrsmBatched, cublasCtrsm_v2, cublasCtrsv_v2, cublasDasum_v2,
                    cublasDaxpy_v2, cublasDcopy_v2, cublasDdot_v2, cublasDgemmBatched,
                    cublasDgemmStridedBatched, cublasDgemm_v2, cublasDgemv_v2, cublasDger_v2,
                    cublasDgetrfBatched, cublasDmatinvBatched, cublasDnrm2_v2, cublasDotEx,
                    cublasDrot_v2, cublasDrotg_v2, cublasDrotm_v2, cublasDrotmg_v2,
                    cublasDscal_v2, cublasDswap_v2, cublasDsymm_v2, cublasDsymv_v2,
                    cublasDsyr2_v2, cublasDsyr2k_v2, cublasDsyr_v2, cublasDsyrk_v2,
                    cublasDtrmm_v2, cublasDtrmv_v2, cublasDtrsmBatched, cublasDtrsm_v2,
                    cublasDtrsv_v2, cublasDzasum_v2, cublasDznrm2_v2, cublasGemmBatchedEx,
                    cublasGemmEx, cublasGemmStridedBatchedEx, cublasHgemm, cublasHgemmBatched,
                    cublasHgemmStridedBatched, cublasIcamax_v2, cublasIcamin_v2,
                    cublasIdamax_v2, cublasIdamin_v2, cublasIsamax_v2, cublasIsamin_v2,
                    cublasIzamax_v2, cublasIzamin_v2, cublasSasum_v2, cublasSaxpy_v2,
                    cublasScasum_v2, cublasScnrm2_v2, cublasScopy_v2, cublasSdot_v2,
                    cublasSetAtomicsMode, cublasSetMathMode, cublasSetPointerMode_v2,
                    cublasSetSmCountTarget, cublasSgemmBatched, cublasSgemmEx,
                    cublasSgemmStridedBatched, cublasSgemm_v2, cublasSgemv_v2, cublasSger_v2,
                    cublasSgetrfBatched, cublasSmatinvBatched, cublasSnrm2_v2, cublasSrot_v2,
                    cublasSrotg_v2, cublasSrotm_v2, cublasSrotmg_v2, cublasSscal_v2,
                    cublasSswap_v2, cublasSsymm_v2, cublasSsymv_v2, cublasSsyr2_v2,
                    cublasSsyr2k_v2, cublasSsyr_v2, cublasSsyrk_v2, cublasStrmm_v2,
                    cublasStrmv_v2, cublasStrsmBatched, cublasStrsm_v2, cublasStrsv_v2,
                    cublasZaxpy_v2, cublasZcopy_v2, cublasZdotc_v2, cublasZdotu_v2,
                    cublasZdrot_v2, cublasZdscal_v2, cublasZgemmBatched,
                    cublasZgemmStridedBatched, cublasZgemm_v2, cublasZgemv_v2, cublasZgerc_v2,
                    cublasZgeru_v2, cublasZgetrfBatched, cublasZhemm_v2, cublasZhemv_v2,
                    cublasZher2_v2, cublasZher2k_v2, cublasZher_v2, cublasZherk_v2,
                    cublasZrot_v2, cublasZrotg_v2, cublasZscal_v2, cublasZswap_v2,
                    cublasZsymm_v2, cublasZsymv_v2, cublasZsyr2_v2, cublasZsyr2k_v2,
                    cublasZsyr_v2, cublasZsyrk_v2, cublasZtrmm_v2, cublasZtrmv_v2,
                    cublasZtrsmBatched, cublasZtrsm_v2, cublasZtrsv_v2,
                }
                (handle: Ended<Blas>) {
                    cublasDestroy_v2,
                }
                (handle: Ended<BlasLt>) {
                    cublasLtDestroy,
                }
                (handle: BlasLt, transform: TransformDescriptor) {
                    cublasLtMatrixTransform,
                }
                (descriptor: Ended<MatmulDescriptor>) {
                    cublasLtMatmulDescDestroy,
                }
                (descriptor: MatmulDescriptor) {
                    cublasLtMatmulDescSetAttribute,
                }
                (preference: Ended<MatmulPreference>) {
                    cublasLtMatmulPreferenceDestroy,
                }
                (preference: MatmulPreference) {
                    cublasLtMatmulPreferenceSetAttribute,
                }
                (layout: Ended<MatrixLayout>) {
                    cublasLtMatrixLayoutDestroy,
                }
                (layout: MatrixLayout) {
                    cublasLtMatrixLayoutSetAttribute,
                }
                (descriptor: Ended<TransformDescriptor>) {
                    cublasLtMatrixTransformDescDestroy,
                }
                (descriptor: TransformDescriptor) {
                    cublasLtMatrixTransformDescSetAttribute,
                }
                (handle: BlasLt) {
                    cublasLtMatmulAlgoInit,
                }
            }
            refused {}
        }
    };
}
