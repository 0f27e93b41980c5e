//! The machine itself: qemu, with hardware virtualization if the host has it, and the output of the checks on its
//! second serial line.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::image::Tree;

/// The longest time the machine may run, even emulated.
const TIME_MAX: Duration = Duration::from_secs(30 * 60);

/// The time a kernel may take to its first output.
const MUTE_MAX: Duration = Duration::from_secs(20);

/// The least output of a running kernel, in bytes; the firmware alone prints less.
const KERNEL_SAYS: usize = 2_000;

/// The interval between two reads of the machine's output.
const POLL: Duration = Duration::from_millis(200);

/// One claim, and its result.
pub(super) struct Check {
    pub(super) name: String,
    pub(super) passed: bool,
    /// The machine's other output, if the check failed.
    pub(super) said: Vec<String>,
}

/// The result of a run.
pub(super) struct Told {
    /// The properties of the machine, and measurements on it.
    pub(super) facts: Vec<String>,
    pub(super) checks: Vec<Check>,
    /// True if the run reached the last check.
    pub(super) is_complete: bool,
    /// The file with the output of the kernel and systemd.
    pub(super) console: PathBuf,
}

impl Told {
    /// Returns the number of failed checks.
    pub(super) fn failed(&self) -> usize {
        self.checks.iter().filter(|check| !check.passed).count()
    }
}

/// The way qemu runs the machine's instructions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The processor runs them directly.
    Kvm,
    /// Each is translated, which works everywhere and is some ten times slower.
    Emulated,
}

/// The way a run of qemu ended.
enum Ended {
    /// The machine switched itself off, or we did after its time was up.
    Off,
    /// It asked for a power cut.
    Cut,
    /// Its kernel printed nothing.
    Mute,
}

/// Boots it, again after each power cut, and waits until it has switched itself off.
pub(super) fn boot(tree: &Tree, image: &Path, verbose: bool) -> Result<Told, String> {
    let [console, results] = ["console", "results"].map(|name| image.with_extension(name));
    let kvm = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm");
    let mut ran = "ran with KVM".to_owned();
    let mut way = Way::Kvm;
    if let Err(error) = kvm {
        (way, ran) = (Way::Emulated, format!("ran emulated (/dev/kvm: {error})"));
    }
    let mut text = String::new();
    loop {
        for file in [&console, &results] {
            std::fs::write(file, "").map_err(|error| format!("{}: {error}", file.display()))?;
        }
        let mut machine = qemu(way, tree, image, [&console, &results])?;
        let ended = wait(&mut machine, &console, &results, verbose);
        let _ = machine.kill();
        let _ = machine.wait();
        let ended = ended?;
        let said =
            std::fs::read(&results).map_err(|error| format!("{}: {error}", results.display()))?;
        text.push_str(&String::from_utf8_lossy(&said));
        match ended {
            Ended::Cut => {}
            Ended::Mute if way == Way::Kvm => {
                println!("/dev/kvm is there, and no kernel boots on it");
                (way, ran) = (
                    Way::Emulated,
                    "ran emulated (no kernel boots on /dev/kvm)".to_owned(),
                );
            }
            Ended::Mute => {
                return Err(format!(
                    "no kernel boots; its console: {}",
                    console.display()
                ));
            }
            Ended::Off => break,
        }
    }
    let mut told = read(&text, console);
    told.facts.insert(0, ran);
    Ok(told)
}

fn qemu(way: Way, tree: &Tree, image: &Path, lines: [&Path; 2]) -> Result<Child, String> {
    let mut qemu = Command::new("qemu-system-x86_64");
    match way {
        // A host that is a virtual machine itself may refuse this register, and then qemu ends at once.
        Way::Kvm => qemu.args(["-accel", "kvm", "-cpu", "host,arch-capabilities=off"]),
        Way::Emulated => qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max"]),
    };
    qemu.args([
        "-smp", "2", "-m", "1024", "-display", "none", "-nic", "none",
    ]);
    qemu.args(["-append", "root=/dev/vda rw console=ttyS0"]);
    qemu.arg("-kernel")
        .arg(tree.boot("vmlinuz-")?)
        .arg("-initrd")
        .arg(tree.boot("initrd.img-")?);
    qemu.arg("-drive")
        .arg(format!("file={},format=raw,if=virtio", image.display()));
    for line in lines {
        qemu.arg("-serial").arg(format!("file:{}", line.display()));
    }
    qemu.stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("qemu: {error}"))
}

fn wait(
    machine: &mut Child,
    console: &Path,
    results: &Path,
    verbose: bool,
) -> Result<Ended, String> {
    let began = Instant::now();
    let mut shown = 0;
    loop {
        let is_over = machine
            .try_wait()
            .map_err(|error| format!("qemu: {error}"))?
            .is_some();
        let is_mute = || std::fs::read(console).map_or(true, |text| text.len() < KERNEL_SAYS);
        if (is_over || began.elapsed() > MUTE_MAX) && is_mute() {
            return Ok(Ended::Mute);
        }
        let text = std::fs::read(results).unwrap_or_default();
        if verbose {
            print!(
                "{}",
                String::from_utf8_lossy(&text[shown.min(text.len())..])
            );
            shown = text.len();
        }
        if text.ends_with(b"CUT\n") {
            return Ok(Ended::Cut);
        }
        if is_over {
            return Ok(Ended::Off);
        }
        if began.elapsed() > TIME_MAX {
            println!(
                "the machine still ran after {} minutes",
                TIME_MAX.as_secs() / 60
            );
            return Ok(Ended::Off);
        }
        std::thread::sleep(POLL);
    }
}

/// Reads the lines of the checks: `FACT …`, `PASS …`, `FAIL …` followed by `| …`, and `DONE` at the end. `CUT` asks for
/// a power cut and was handled before.
fn read(text: &str, console: PathBuf) -> Told {
    let mut told = Told {
        facts: Vec::new(),
        checks: Vec::new(),
        is_complete: false,
        console,
    };
    for line in text.lines().map(str::trim_end) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "FACT" => told.facts.push(rest.to_owned()),
            "PASS" | "FAIL" => {
                told.checks.push(Check {
                    name: rest.to_owned(),
                    passed: word == "PASS",
                    said: Vec::new(),
                });
            }
            "|" => {
                if let Some(check) = told.checks.last_mut() {
                    check.said.push(rest.to_owned());
                }
            }
            "DONE" => told.is_complete = true,
            _ => {}
        }
    }
    told
}
