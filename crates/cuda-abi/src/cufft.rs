//! cuFFT: plans with a modelled work area.

/// Hands the rows of `libcufft` to `$then!`.
#[macro_export]
macro_rules! cufft {
    ($then:ident) => {
        $then! { cufft;
            answered {
                fft::create => fn cufftCreate(out: *mut c_int);
                fft::make_plan => fn cufftXtMakePlanMany(plan: c_int, rank: c_int, lengths: *const i64, in_embed: Address, in_stride: i64, in_distance: i64, in_type: c_int, out_embed: Address, out_stride: i64, out_distance: i64, out_type: c_int, batch: i64, work: *mut usize, compute: c_int);
            }
            values {}
            silent {
                cufftDestroy, cufftSetAutoAllocation, cufftSetStream, cufftSetWorkArea,
                cufftXtExec,
            }
            refused {}
        }
    };
}
