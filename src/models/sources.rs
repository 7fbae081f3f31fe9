//! Where files may be asked for, besides what the manifest says: mirror, hub address, token, Python.

use std::path::{Path, PathBuf};

use crate::config::ModelsConfig;

/// The public model hub, where `HF_ENDPOINT` names no other.
const PUBLIC_HUB: &str = "https://huggingface.co";

/// What a fetch may use.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Asked first.
    pub mirror: Option<Mirror>,
    /// Base address of the model hub, without a slash at the end.
    pub hub: String,
    /// Sent to the hub and to nobody else.
    pub hub_token: Option<Token>,
    /// The Python whose pip is used.
    pub python: PathBuf,
}

/// A place that holds the files as `<model>/<file>` or `<file>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mirror {
    Folder(PathBuf),
    /// Without a slash at the end.
    Address(String),
}

/// A secret that no log and no error shows.
#[derive(Clone)]
pub struct Token(pub String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Sources {
    /// What the environment (`REACHY_MODELS_MIRROR`, `HF_ENDPOINT`, `HF_TOKEN`) and the config say.
    #[must_use]
    pub fn from_environment(config: &ModelsConfig, base_folder: &Path) -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let mirror = match variable("REACHY_MODELS_MIRROR") {
            Some(mirror) => Mirror::parse(&mirror, Path::new("")),
            None => Mirror::parse(&config.mirror, base_folder),
        };
        Self {
            mirror,
            hub: without_slash(&variable("HF_ENDPOINT").unwrap_or_else(|| PUBLIC_HUB.to_owned())),
            hub_token: variable("HF_TOKEN").map(Token),
            python: "python3".into(),
        }
    }
}

impl Mirror {
    /// Reads a mirror as an owner writes it; empty: none. A relative folder is relative to `base_folder`.
    #[must_use]
    pub fn parse(text: &str, base_folder: &Path) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return Some(Self::Address(without_slash(text)));
        }
        Some(Self::Folder(base_folder.join(text)))
    }
}

fn without_slash(address: &str) -> String {
    address.trim().trim_end_matches('/').to_owned()
}

/// An address as messages show it: without a name or password in it.
pub(super) fn shown(address: &str) -> String {
    match address.split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find('/').unwrap_or(rest.len());
        rest[..end].rfind('@').map(|at| format!("{scheme}://{}", &rest[at + 1..]))
    }) {
        Some(clean) => clean,
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_is_a_folder_or_an_address_and_empty_is_none() {
        let base = Path::new("/etc/robot");
        assert_eq!(Mirror::parse(" ", base), None);
        assert_eq!(Mirror::parse("weights", base), Some(Mirror::Folder("/etc/robot/weights".into())));
        assert_eq!(Mirror::parse("/mnt/usb", base), Some(Mirror::Folder("/mnt/usb".into())));
        assert_eq!(Mirror::parse("http://nas.local/w/", base), Some(Mirror::Address("http://nas.local/w".into())));
    }

    #[test]
    fn no_message_shows_a_token_or_a_password() {
        assert_eq!(format!("{:?}", Token("secret".into())), "Token(…)");
        assert_eq!(shown("http://me:secret@nas.local/w"), "http://nas.local/w");
        assert_eq!(shown("http://nas.local/a@b"), "http://nas.local/a@b");
    }
}
