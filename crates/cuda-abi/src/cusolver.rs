//! cuSOLVER: factorisations; the sizes of their work areas are modelled.

/// Hands the rows of `libcusolver` to `$then!`.
#[macro_export]
macro_rules! cusolver {
    ($then:ident) => {
        $then! { cusolver;
            answered {
                capture::set_library_stream => fn cusolverDnSetStream(library: Solver, stream: Stream);
                handles::create => fn cusolverDnCreate(out: *mut Solver);
                handles::create => fn cusolverDnCreateGesvdjInfo(out: *mut GesvdjInfo);
                handles::create => fn cusolverDnCreateSyevjInfo(out: *mut SyevjInfo);
                handles::create => fn cusolverDnCreateParams(out: *mut SolverParameters);
                solver::stream => fn cusolverDnGetStream(handle: Solver, out: *mut Handle);
                solver::matrix => fn cusolverDnSgeqrf_bufferSize(handle: Solver, m: c_int, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::matrix => fn cusolverDnSgetrf_bufferSize(handle: Solver, m: c_int, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::gesvd => fn cusolverDnSgesvd_bufferSize(handle: Solver, m: c_int, n: c_int, out: *mut c_int);
                solver::gesvda => fn cusolverDnSgesvdaStridedBatched_bufferSize(handle: Solver, jobz: c_int, rank: c_int, m: c_int, n: c_int, a: Address, lda: c_int, stride_a: i64, s: Address, stride_s: i64, u: Address, ldu: c_int, stride_u: i64, v: Address, ldv: c_int, stride_v: i64, out: *mut c_int, batch: c_int);
                solver::gesvdj_batched => fn cusolverDnSgesvdjBatched_bufferSize(handle: Solver, jobz: c_int, m: c_int, n: c_int, a: Address, lda: c_int, s: Address, u: Address, ldu: c_int, v: Address, ldv: c_int, out: *mut c_int, parameters: GesvdjInfo, batch: c_int);
                solver::gesvdj => fn cusolverDnSgesvdj_bufferSize(handle: Solver, jobz: c_int, econ: c_int, m: c_int, n: c_int, a: Address, lda: c_int, s: Address, u: Address, ldu: c_int, v: Address, ldv: c_int, out: *mut c_int);
                solver::eigen => fn cusolverDnSsyevd_bufferSize(handle: Solver, jobz: c_int, uplo: c_int, n: c_int, a: Address, lda: c_int, w: Address, out: *mut c_int);
                solver::eigen => fn cusolverDnSsyevj_bufferSize(handle: Solver, jobz: c_int, uplo: c_int, n: c_int, a: Address, lda: c_int, w: Address, out: *mut c_int);
                solver::eigen_batched => fn cusolverDnSsyevjBatched_bufferSize(handle: Solver, jobz: c_int, uplo: c_int, n: c_int, a: Address, lda: c_int, w: Address, out: *mut c_int, parameters: SyevjInfo, batch: c_int);
                solver::square_uplo => fn cusolverDnSpotrf_bufferSize(handle: Solver, uplo: c_int, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::square => fn cusolverDnSsytrf_bufferSize(handle: Solver, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::reflectors => fn cusolverDnSorgqr_bufferSize(handle: Solver, m: c_int, n: c_int, k: c_int, a: Address, lda: c_int, tau: Address, out: *mut c_int);
                solver::apply_reflectors => fn cusolverDnSormqr_bufferSize(handle: Solver, side: c_int, trans: c_int, m: c_int, n: c_int, k: c_int, a: Address, lda: c_int, tau: Address, c: Address, ldc: c_int, out: *mut c_int);
                solver::matrix => fn cusolverDnDgeqrf_bufferSize(handle: Solver, m: c_int, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::matrix => fn cusolverDnDgetrf_bufferSize(handle: Solver, m: c_int, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::gesvd => fn cusolverDnDgesvd_bufferSize(handle: Solver, m: c_int, n: c_int, out: *mut c_int);
                solver::gesvda => fn cusolverDnDgesvdaStridedBatched_bufferSize(handle: Solver, jobz: c_int, rank: c_int, m: c_int, n: c_int, a: Address, lda: c_int, stride_a: i64, s: Address, stride_s: i64, u: Address, ldu: c_int, stride_u: i64, v: Address, ldv: c_int, stride_v: i64, out: *mut c_int, batch: c_int);
                solver::gesvdj_batched => fn cusolverDnDgesvdjBatched_bufferSize(handle: Solver, jobz: c_int, m: c_int, n: c_int, a: Address, lda: c_int, s: Address, u: Address, ldu: c_int, v: Address, ldv: c_int, out: *mut c_int, parameters: GesvdjInfo, batch: c_int);
                solver::gesvdj => fn cusolverDnDgesvdj_bufferSize(handle: Solver, jobz: c_int, econ: c_int, m: c_int, n: c_int, a: Address, lda: c_int, s: Address, u: Address, ldu: c_int, v: Address, ldv: c_int, out: *mut c_int);
                solver::eigen => fn cusolverDnDsyevd_bufferSize(handle: Solver, jobz: c_int, uplo: c_int, n: c_int, a: Address, lda: c_int, w: Address, out: *mut c_int);
                solver::eigen => fn cusolverDnDsyevj_bufferSize(handle: Solver, jobz: c_int, uplo: c_int, n: c_int, a: Address, lda: c_int, w: Address, out: *mut c_int);
                solver::eigen_batched => fn cusolverDnDsyevjBatched_bufferSize(handle: Solver, jobz: c_int, uplo: c_int, n: c_int, a: Address, lda: c_int, w: Address, out: *mut c_int, parameters: SyevjInfo, batch: c_int);
                solver::square_uplo => fn cusolverDnDpotrf_bufferSize(handle: Solver, uplo: c_int, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::square => fn cusolverDnDsytrf_bufferSize(handle: Solver, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::reflectors => fn cusolverDnDorgqr_bufferSize(handle: Solver, m: c_int, n: c_int, k: c_int, a: Address, lda: c_int, tau: Address, out: *mut c_int);
                solver::apply_reflectors => fn cusolverDnDormqr_bufferSize(handle: Solver, side: c_int, trans: c_int, m: c_int, n: c_int, k: c_int, a: Address, lda: c_int, tau: Address, c: Address, ldc: c_int, out: *mut c_int);
                solver::matrix => fn cusolverDnCgeqrf_bufferSize(handle: Solver, m: c_int, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::matrix => fn cusolverDnCgetrf_bufferSize(handle: Solver, m: c_int, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::gesvd => fn cusolverDnCgesvd_bufferSize(handle: Solver, m: c_int, n: c_int, out: *mut c_int);
                solver::gesvda => fn cusolverDnCgesvdaStridedBatched_bufferSize(handle: Solver, jobz: c_int, rank: c_int, m: c_int, n: c_int, a: Address, lda: c_int, stride_a: i64, s: Address, stride_s: i64, u: Address, ldu: c_int, stride_u: i64, v: Address, ldv: c_int, stride_v: i64, out: *mut c_int, batch: c_int);
                solver::gesvdj_batched => fn cusolverDnCgesvdjBatched_bufferSize(handle: Solver, jobz: c_int, m: c_int, n: c_int, a: Address, lda: c_int, s: Address, u: Address, ldu: c_int, v: Address, ldv: c_int, out: *mut c_int, parameters: GesvdjInfo, batch: c_int);
                solver::gesvdj => fn cusolverDnCgesvdj_bufferSize(handle: Solver, jobz: c_int, econ: c_int, m: c_int, n: c_int, a: Address, lda: c_int, s: Address, u: Address, ldu: c_int, v: Address, ldv: c_int, out: *mut c_int);
                solver::eigen => fn cusolverDnCheevd_bufferSize(handle: Solver, jobz: c_int, uplo: c_int, n: c_int, a: Address, lda: c_int, w: Address, out: *mut c_int);
                solver::eigen => fn cusolverDnCheevj_bufferSize(handle: Solver, jobz: c_int, uplo: c_int, n: c_int, a: Address, lda: c_int, w: Address, out: *mut c_int);
                solver::eigen_batched => fn cusolverDnCheevjBatched_bufferSize(handle: Solver, jobz: c_int, uplo: c_int, n: c_int, a: Address, lda: c_int, w: Address, out: *mut c_int, parameters: SyevjInfo, batch: c_int);
                solver::square_uplo => fn cusolverDnCpotrf_bufferSize(handle: Solver, uplo: c_int, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::square => fn cusolverDnCsytrf_bufferSize(handle: Solver, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::reflectors => fn cusolverDnCungqr_bufferSize(handle: Solver, m: c_int, n: c_int, k: c_int, a: Address, lda: c_int, tau: Address, out: *mut c_int);
                solver::apply_reflectors => fn cusolverDnCunmqr_bufferSize(handle: Solver, side: c_int, trans: c_int, m: c_int, n: c_int, k: c_int, a: Address, lda: c_int, tau: Address, c: Address, ldc: c_int, out: *mut c_int);
                solver::matrix => fn cusolverDnZgeqrf_bufferSize(handle: Solver, m: c_int, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::matrix => fn cusolverDnZgetrf_bufferSize(handle: Solver, m: c_int, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::gesvd => fn cusolverDnZgesvd_bufferSize(handle: Solver, m: c_int, n: c_int, out: *mut c_int);
                solver::gesvda => fn cusolverDnZgesvdaStridedBatched_bufferSize(handle: Solver, jobz: c_int, rank: c_int, m: c_int, n: c_int, a: Address, lda: c_int, stride_a: i64, s: Address, stride_s: i64, u: Address, ldu: c_int, stride_u: i64, v: Address, ldv: c_int, stride_v: i64, out: *mut c_int, batch: c_int);
                solver::gesvdj_batched => fn cusolverDnZgesvdjBatched_bufferSize(handle: Solver, jobz: c_int, m: c_int, n: c_int, a: Address, lda: c_int, s: Address, u: Address, ldu: c_int, v: Address, ldv: c_int, out: *mut c_int, parameters: GesvdjInfo, batch: c_int);
                solver::gesvdj => fn cusolverDnZgesvdj_bufferSize(handle: Solver, jobz: c_int, econ: c_int, m: c_int, n: c_int, a: Address, lda: c_int, s: Address, u: Address, ldu: c_int, v: Address, ldv: c_int, out: *mut c_int);
                solver::eigen => fn cusolverDnZheevd_bufferSize(handle: Solver, jobz: c_int, uplo: c_int, n: c_int, a: Address, lda: c_int, w: Address, out: *mut c_int);
                solver::eigen => fn cusolverDnZheevj_bufferSize(handle: Solver, jobz: c_int, uplo: c_int, n: c_int, a: Address, lda: c_int, w: Address, out: *mut c_int);
                solver::eigen_batched => fn cusolverDnZheevjBatched_bufferSize(handle: Solver, jobz: c_int, uplo: c_int, n: c_int, a: Address, lda: c_int, w: Address, out: *mut c_int, parameters: SyevjInfo, batch: c_int);
                solver::square_uplo => fn cusolverDnZpotrf_bufferSize(handle: Solver, uplo: c_int, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::square => fn cusolverDnZsytrf_bufferSize(handle: Solver, n: c_int, a: Address, lda: c_int, out: *mut c_int);
                solver::reflectors => fn cusolverDnZungqr_bufferSize(handle: Solver, m: c_int, n: c_int, k: c_int, a: Address, lda: c_int, tau: Address, out: *mut c_int);
                solver::apply_reflectors => fn cusolverDnZunmqr_bufferSize(handle: Solver, side: c_int, trans: c_int, m: c_int, n: c_int, k: c_int, a: Address, lda: c_int, tau: Address, c: Address, ldc: c_int, out: *mut c_int);
                solver::x_geqrf => fn cusolverDnXgeqrf_bufferSize(handle: Solver, parameters: Optional<SolverParameters>, m: i64, n: i64, a_type: c_int, a: Address, lda: i64, tau_type: c_int, tau: Address, compute: c_int, device: *mut usize, host: *mut usize);
                solver::x_potrf => fn cusolverDnXpotrf_bufferSize(handle: Solver, parameters: Optional<SolverParameters>, uplo: c_int, n: i64, a_type: c_int, a: Address, lda: i64, compute: c_int, device: *mut usize, host: *mut usize);
                solver::x_syevd => fn cusolverDnXsyevd_bufferSize(handle: Solver, parameters: Optional<SolverParameters>, jobz: c_int, uplo: c_int, n: i64, a_type: c_int, a: Address, lda: i64, w_type: c_int, w: Address, compute: c_int, device: *mut usize, host: *mut usize);
                solver::x_syev_batched => fn cusolverDnXsyevBatched_bufferSize(handle: Solver, parameters: Optional<SolverParameters>, jobz: c_int, uplo: c_int, n: i64, a_type: c_int, a: Address, lda: i64, w_type: c_int, w: Address, compute: c_int, device: *mut usize, host: *mut usize, batch: i64);
                solver::x_sytrs => fn cusolverDnXsytrs_bufferSize(handle: Solver, uplo: c_int, n: i64, columns: i64, a_type: c_int, a: Address, lda: i64, pivots: Address, b_type: c_int, b: Address, ldb: i64, device: *mut usize, host: *mut usize);
                solver::x_geev => fn cusolverDnXgeev_bufferSize(handle: Solver, parameters: Optional<SolverParameters>, jobvl: c_int, jobvr: c_int, n: i64, a_type: c_int, a: Address, lda: i64, w_type: c_int, w: Address, vl_type: c_int, vl: Address, ldvl: i64, vr_type: c_int, vr: Address, ldvr: i64, compute: c_int, device: *mut usize, host: *mut usize);
            }
            values {}
            silent {
                (handle: Solver) {
                    cusolverDnCgeqrf, cusolverDnCgesvd, cusolverDnCgesvdaStridedBatched,
                    cusolverDnCgesvdj, cusolverDnCgesvdjBatched, cusolverDnCgetrf,
                    cusolverDnCgetrs, cusolverDnCheevd, cusolverDnCheevj,
                    cusolverDnCheevjBatched, cusolverDnCpotrf, cusolverDnCpotrfBatched,
                    cusolverDnCpotrs, cusolverDnCpotrsBatched, cusolverDnCsytrf,
                    cusolverDnCungqr, cusolverDnCunmqr, cusolverDnDgeqrf, cusolverDnDgesvd,
                    cusolverDnDgesvdaStridedBatched, cusolverDnDgesvdj,
                    cusolverDnDgesvdjBatched, cusolverDnDgetrf, cusolverDnDgetrs,
                    cusolverDnDorgqr, cusolverDnDormqr, cusolverDnDpotrf,
                    cusolverDnDpotrfBatched, cusolverDnDpotrs, cusolverDnDpotrsBatched,
                    cusolverDnDsyevd, cusolverDnDsyevj, cusolverDnDsyevjBatched,
                    cusolverDnDsytrf, cusolverDnSetDeterministicMode, cusolverDnSgeqrf,
                    cusolverDnSgesvd, cusolverDnSgesvdaStridedBatched, cusolverDnSgesvdj,
                    cusolverDnSgesvdjBatched, cusolverDnSgetrf, cusolverDnSgetrs,
                    cusolverDnSorgqr, cusolverDnSormqr, cusolverDnSpotrf,
                    cusolverDnSpotrfBatched, cusolverDnSpotrs, cusolverDnSpotrsBatched,
                    cusolverDnSsyevd, cusolverDnSsyevj, cusolverDnSsyevjBatched,
                    cusolverDnSsytrf, cusolverDnXgeev, cusolverDnXgeqrf, cusolverDnXpotrf,
                    cusolverDnXpotrs, cusolverDnXsyevBatched, cusolverDnXsyevd,
                    cusolverDnXsytrs, cusolverDnZgeqrf, cusolverDnZgesvd,
                    cusolverDnZgesvdaStridedBatched, cusolverDnZgesvdj,
                    cusolverDnZgesvdjBatched, cusolverDnZgetrf, cusolverDnZgetrs,
                    cusolverDnZheevd, cusolverDnZheevj, cusolverDnZheevjBatched,
                    cusolverDnZpotrf, cusolverDnZpotrfBatched, cusolverDnZpotrs,
                    cusolverDnZpotrsBatched, cusolverDnZsytrf, cusolverDnZungqr,
                    cusolverDnZunmqr,
                }
                (handle: Ended<Solver>) {
                    cusolverDnDestroy,
                }
                (info: Ended<GesvdjInfo>) {
                    cusolverDnDestroyGesvdjInfo,
                }
                (info: Ended<SyevjInfo>) {
                    cusolverDnDestroySyevjInfo,
                }
                (parameters: Ended<SolverParameters>) {
                    cusolverDnDestroyParams,
                }
                (info: GesvdjInfo) {
                    cusolverDnXgesvdjSetMaxSweeps, cusolverDnXgesvdjSetSortEig,
                    cusolverDnXgesvdjSetTolerance,
                }
                (info: SyevjInfo) {
                    cusolverDnXsyevjSetSortEig,
                }
            }
            refused {}
        }
    };
}
