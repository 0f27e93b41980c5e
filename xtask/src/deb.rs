//! `xtask deb`: the Debian package of the programs in the build folder, made with the library of `cargo-deb`. A
//! separate process, because `cargo-deb` takes the build folder from the environment.

use std::path::PathBuf;

use cargo_deb::compress::{CompressConfig, Format};
use cargo_deb::config::{BuildOptions, DebugSymbolOptions};
use cargo_deb::listener::NoOpListener;
use cargo_deb::{CargoDeb, CargoLockingFlags, OutputPath};

/// `xtask deb`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Path of the package
    package: PathBuf,
    /// Compression, by the program of that name
    compression: Compression,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Compression {
    Gz,
    Xz,
}

/// Makes the package of the crate in the current directory.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let package = CargoDeb {
        options: BuildOptions {
            // The programs are already stripped.
            debug: DebugSymbolOptions {
                strip_override: Some(false),
                ..DebugSymbolOptions::default()
            },
            cargo_locking_flags: CargoLockingFlags {
                offline: true,
                frozen: false,
                locked: true,
            },
            ..BuildOptions::default()
        },
        no_build: true,
        verbose_cargo_build: false,
        verbose: false,
        compress_config: CompressConfig {
            fast: true,
            compress_type: match args.compression {
                Compression::Gz => Format::Gzip,
                Compression::Xz => Format::Xz,
            },
            compress_system: true,
            rsyncable: false,
        },
        deb_output: Some(OutputPath {
            path: &args.package,
            is_dir: false,
        }),
        install: (false, false),
    };
    let made = package.process(&NoOpListener);
    made.map_err(|error| error.to_string())?;
    Ok(true)
}
