//! The names that packagers give to the programs' platform.

/// A platform under Rust's name for it.
#[derive(Debug)]
pub(super) struct Platform {
    /// As in `x86_64-unknown-linux-gnu`.
    pub(super) triple: String,
}

impl Platform {
    pub(super) fn of(target: Option<&str>) -> Result<Self, String> {
        let triple = target.map_or_else(here, |target| Ok(target.to_owned()))?;
        let platform = Self { triple };
        if platform.is_known() {
            Ok(platform)
        } else {
            Err(format!("nothing is packed for {}", platform.triple))
        }
    }

    fn is_known(&self) -> bool {
        let has_cpu = ["x86_64-", "aarch64-"]
            .iter()
            .any(|cpu| self.triple.starts_with(cpu));
        has_cpu && (self.is_linux() || self.is_mac())
    }

    pub(super) fn is_linux(&self) -> bool {
        self.triple.contains("-linux-")
    }

    fn is_mac(&self) -> bool {
        self.triple.ends_with("-apple-darwin")
    }

    fn is_arm(&self) -> bool {
        self.triple.starts_with("aarch64-")
    }

    pub(super) fn debian(&self) -> &'static str {
        if self.is_arm() { "arm64" } else { "amd64" }
    }

    /// Returns node's names for the system and the processor: `process.platform` and `process.arch`.
    pub(super) fn node(&self) -> (&'static str, &'static str) {
        (
            if self.is_mac() { "darwin" } else { "linux" },
            if self.is_arm() { "arm64" } else { "x64" },
        )
    }

    /// Returns the tag of a wheel. On Linux it names the oldest C library that the programs run with, read from the
    /// programs.
    pub(super) fn wheel(&self, programs: &[Vec<u8>]) -> String {
        let cpu = self.triple.split('-').next().unwrap_or_default();
        if self.is_mac() {
            // The oldest systems that Rust builds for: 10.12, and 11.0 on Apple silicon.
            return if self.is_arm() {
                "macosx_11_0_arm64".to_owned()
            } else {
                "macosx_10_12_x86_64".to_owned()
            };
        }
        if self.triple.ends_with("-musl") {
            return format!("manylinux_2_17_{cpu}.musllinux_1_1_{cpu}");
        }
        let minor = programs.iter().filter_map(|program| glibc(program)).max();
        // No system older than 2.17 runs a current pip.
        format!("manylinux_2_{}_{cpu}", minor.unwrap_or(17).max(17))
    }
}

/// The platform of the compiler.
fn here() -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = super::ran(std::process::Command::new(rustc).arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc names no host")?.to_owned())
}

/// The newest glibc whose symbols a program uses: N of the largest `GLIBC_2.N`.
fn glibc(program: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"GLIBC_2.";
    memchr::memmem::find_iter(program, NAME)
        .filter_map(|at| {
            let digits = program[at + NAME.len()..].iter();
            let digits: String = digits
                .take_while(|byte| byte.is_ascii_digit())
                .map(|&byte| char::from(byte))
                .collect();
            digits.parse().ok()
        })
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheel_is_for_the_oldest_library_that_has_every_symbol() {
        let platform = Platform::of(Some("x86_64-unknown-linux-gnu")).expect("known");
        let programs = [
            b"..GLIBC_2.2.5..GLIBC_2.34\0".to_vec(),
            b"GLIBC_2.28\0GLIBC_PRIVATE".to_vec(),
        ];
        assert_eq!(platform.wheel(&programs), "manylinux_2_34_x86_64");
        assert_eq!(platform.wheel(&[b"none".to_vec()]), "manylinux_2_17_x86_64");
    }

    #[test]
    fn nothing_is_packed_for_a_platform_without_a_name_everywhere() {
        assert!(Platform::of(Some("riscv64gc-unknown-linux-gnu")).is_err());
        assert!(Platform::of(Some("x86_64-pc-windows-msvc")).is_err());
    }
}
