//! NVRTC: programs "compile" to nothing, since no kernel runs.

/// Hands the rows of `libnvrtc` to `$then!`.
#[macro_export]
macro_rules! nvrtc {
    ($then:ident) => {
        $then! { nvrtc;
            answered {
                nvrtc::version => fn nvrtcVersion(major: *mut c_int, minor: *mut c_int);
                handles::create => fn nvrtcCreateProgram(out: *mut Program; source: NonNull);
                nvrtc::destroy => fn nvrtcDestroyProgram(program: *mut Program);
                nvrtc::code_size => fn nvrtcGetPTXSize(program: Program, out: *mut usize);
                nvrtc::code_size => fn nvrtcGetCUBINSize(program: Program, out: *mut usize);
                nvrtc::code_size => fn nvrtcGetLTOIRSize(program: Program, out: *mut usize);
                nvrtc::code_size => fn nvrtcGetProgramLogSize(program: Program, out: *mut usize);
                nvrtc::code => fn nvrtcGetPTX(program: Program, out: *mut u8);
                nvrtc::code => fn nvrtcGetCUBIN(program: Program, out: *mut u8);
                nvrtc::code => fn nvrtcGetLTOIR(program: Program, out: *mut u8);
                nvrtc::code => fn nvrtcGetProgramLog(program: Program, out: *mut u8);
                nvrtc::lowered_name => fn nvrtcGetLoweredName(program: Program, name: *const c_char, out: *mut *const c_char);
                nvrtc::arch_count => fn nvrtcGetNumSupportedArchs(out: *mut c_int);
                nvrtc::archs => fn nvrtcGetSupportedArchs(out: *mut c_int);
            }
            values {
                error::nvrtc_text => fn nvrtcGetErrorString(code: c_int) -> *const c_char;
            }
            silent {
                () {
                    __nvrtcCPEx,
                }
                (program: Program) {
                    nvrtcCompileProgram,
                }
                (program: Program, name: NonNull) {
                    nvrtcAddNameExpression,
                }
            }
            refused {}
        }
    };
}
