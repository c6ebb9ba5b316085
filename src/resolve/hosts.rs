//! `/etc/hosts`, which DNS knows nothing of.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::SystemTime;

/// Read again when it has changed, which is looked at with each name.
pub struct HostsFile {
    path: PathBuf,
    version: Option<(SystemTime, u64)>,
    entries: Vec<(IpAddr, String)>,
}

impl HostsFile {
    pub fn system() -> Self {
        Self::at("/etc/hosts".into())
    }

    fn at(path: PathBuf) -> Self {
        Self { path, version: None, entries: Vec::new() }
    }

    /// In the order of the file.
    pub fn find(&mut self, host: &str) -> Vec<IpAddr> {
        self.refresh();
        let host = host.strip_suffix('.').unwrap_or(host);
        let mut found = Vec::new();
        for (ip, _) in self.entries.iter().filter(|(_, name)| name.eq_ignore_ascii_case(host)) {
            if !found.contains(ip) {
                found.push(*ip);
            }
        }
        found
    }

    fn refresh(&mut self) {
        let version = fs::metadata(&self.path)
            .and_then(|metadata| Ok((metadata.modified()?, metadata.len())))
            .ok();
        if version.is_some() && version == self.version {
            return;
        }
        self.version = version;
        let text = fs::read(&self.path).unwrap_or_default();
        self.entries = parse(&String::from_utf8_lossy(&text));
    }
}

fn parse(text: &str) -> Vec<(IpAddr, String)> {
    let mut entries = Vec::new();
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
        let Some(ip) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else { continue };
        entries.extend(words.map(|name| (ip, name.to_owned())));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_of_a_name_in_the_order_of_the_file() {
        let entries = parse(
            "127.0.0.1\tlocalhost broker-1\n# 10.0.0.9 broker-1\n::1 localhost # 10.0.0.8 x\n\
             bad line\n10.0.0.1\n",
        );
        let mut file = HostsFile::at("/nonexistent/hosts".into());
        assert_eq!(file.find("localhost"), [] as [IpAddr; 0]);
        file.path = std::env::temp_dir().join(format!("hosts-{}", std::process::id()));
        fs::write(&file.path, "127.0.0.1 localhost Broker-1\n::1 localhost\n127.0.0.1 localhost\n")
            .unwrap();
        let both = ["127.0.0.1", "::1"].map(|ip| ip.parse::<IpAddr>().unwrap());
        assert_eq!(file.find("LOCALHOST."), both);
        fs::write(&file.path, "10.0.0.1 broker-1\n").unwrap();
        assert_eq!(file.find("broker-1"), ["10.0.0.1"].map(|ip| ip.parse::<IpAddr>().unwrap()));
        fs::remove_file(&file.path).unwrap();
        assert_eq!(file.find("broker-1"), [] as [IpAddr; 0]);
        assert_eq!(entries.len(), 3);
    }
}
