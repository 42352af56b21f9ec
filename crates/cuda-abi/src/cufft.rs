//! cuFFT: plans with a modelled work area.

/// Hands the rows of `libcufft` to `$then!`.
#[macro_export]
macro_rules! cufft {
    ($then:ident) => {
        $then! { cufft;
            answered {
                capture::set_plan_stream => fn cufftSetStream(plan: Plan, stream: Stream);
                fft::create => fn cufftCreate(out: *mut Plan);
                fft::destroy => fn cufftDestroy(plan: Plan);
                fft::make_plan => fn cufftXtMakePlanMany(plan: Plan, rank: c_int, lengths: *const i64, in_embed: Address, in_stride: i64, in_distance: i64, in_type: c_int, out_embed: Address, out_stride: i64, out_distance: i64, out_type: c_int, batch: i64, work: *mut usize, compute: c_int);
            }
            values {}
            silent {
                (plan: Plan) {
                    cufftSetAutoAllocation, cufftSetWorkArea, cufftXtExec,
                }
            }
            refused {}
        }
    };
}
