//! Generates manual pages and completions from the description of the command line.

use crate::cli::Cli;
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::fs;
use std::path::Path;

/// Writes manual pages to `man/man1/*.1` and completions to where shells look for them, below a `share` folder.
pub fn run(share: &Path) -> Result<()> {
    let mut command = Cli::command();
    command.build();
    for (shell, folder, name) in [
        (Shell::Bash, "bash-completion/completions", "nd"),
        (Shell::Zsh, "zsh/site-functions", "_nd"),
        (Shell::Fish, "fish/vendor_completions.d", "nd.fish"),
    ] {
        let folder = share.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "nd", &mut text);
        fs::write(folder.join(name), text)?;
    }
    let pages = share.join("man/man1");
    fs::create_dir_all(&pages).with_context(|| format!("making {}", pages.display()))?;
    clap_mangen::generate_to(command, &pages).with_context(|| format!("writing to {}", pages.display()))?;
    Ok(())
}
