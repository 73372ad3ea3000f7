//! The arguments that describe a system to boot, and devices of the machine.

use super::run::{named, split_name};
use clap::{Args as ClapArgs, ValueEnum};
use hartrace_capture::quantity::parse_count;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What is booted, and with which devices.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "System")]
pub(crate) struct System {
    /// Firmware to start, such as OpenSBI: an ELF file or a raw binary [default: none; the
    /// kernel starts in machine mode]
    #[arg(long, value_name = "FILE|none")]
    pub(crate) bios: Option<PathBuf>,
    /// Kernel to boot: an ELF file or a raw binary such as Linux's Image
    #[arg(long, value_name = "FILE")]
    pub(crate) kernel: Option<PathBuf>,
    /// Initial file system for the kernel
    #[arg(long, value_name = "FILE")]
    pub(crate) initrd: Option<PathBuf>,
    /// Command line for the kernel
    #[arg(long, value_name = "TEXT")]
    pub(crate) append: Option<String>,
    /// Device tree to use instead of that of the machine
    #[arg(long, value_name = "FILE")]
    pub(crate) dtb: Option<PathBuf>,
    /// Disk image, as a virtio block device; repeatable. Writes are kept in memory and
    /// forgotten, or refused (ro:FILE), or change the image (rw:FILE), or go to another file
    /// that is used again the next time (over=OVERLAY:FILE)
    #[arg(long, value_name = "[ro:|rw:|over=OVERLAY:]FILE", value_parser = named(DiskSpec::parse))]
    pub(crate) disk: Vec<DiskSpec>,
    /// Device that gets the input: the UART, or a virtio console [default: uart]
    #[arg(long, value_name = "uart|virtio", hide_possible_values = true)]
    pub(crate) console: Option<Console>,
    /// Time of day when the machine starts: seconds since 1970, or now [default: 0]
    #[arg(long, value_name = "SECONDS|now", value_parser = time_of_day)]
    pub(crate) rtc: Option<u64>,
    /// End the run when the system asks for a reset [default: it starts again]
    #[arg(long)]
    pub(crate) no_reboot: bool,
}

impl System {
    /// Whether a system is to be booted.
    pub(crate) fn is_given(&self) -> bool {
        self.bios().is_some() || self.kernel.is_some()
    }

    /// The firmware, unless there shall be none.
    pub(crate) fn bios(&self) -> Option<&Path> {
        self.bios
            .as_deref()
            .filter(|bios| *bios != Path::new("none"))
    }

    /// The files that are read.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> + Clone {
        let files = [&self.kernel, &self.initrd, &self.dtb];
        let files = files.into_iter().flatten().map(PathBuf::as_path);
        let disks = self.disk.iter().map(|disk| disk.file.as_path());
        self.bios().into_iter().chain(files).chain(disks)
    }
}

/// Which device gets the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Console {
    Uart,
    Virtio,
}

/// What becomes of writes to a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DiskWrites {
    Forgotten,
    Refused,
    Kept,
    /// In this file.
    Overlay(PathBuf),
}

/// `FILE`, `ro:FILE`, `rw:FILE` or `over=OVERLAY:FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskSpec {
    pub(crate) file: PathBuf,
    pub(crate) writes: DiskWrites,
}

impl DiskSpec {
    fn parse(text: &OsStr) -> Result<DiskSpec, String> {
        let (access, rest) = split_name(text, ':');
        let overlay = access.strip_prefix("over=");
        let (file, writes) = match (access.as_str(), overlay) {
            ("ro", _) => (rest, DiskWrites::Refused),
            ("rw", _) => (rest, DiskWrites::Kept),
            (_, Some(overlay)) => (rest, DiskWrites::Overlay(overlay.into())),
            _ => (text.to_owned(), DiskWrites::Forgotten),
        };
        match file.is_empty() || overlay == Some("") {
            true => Err("write FILE, ro:FILE, rw:FILE or over=OVERLAY:FILE".to_owned()),
            false => Ok(DiskSpec {
                file: file.into(),
                writes,
            }),
        }
    }
}

fn time_of_day(text: &str) -> Result<u64, String> {
    if text == "now" {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        return Ok(now.map_or(0, |now| now.as_secs()));
    }
    parse_count(text).ok_or_else(|| "write now, or seconds since 1970".to_owned())
}
