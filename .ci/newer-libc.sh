#!/bin/sh
# Owns the folder .data/newer-libc: the C and C++ runtime of the Debian release after the one this machine runs, unpacked and never
# installed, so that the uWebSockets.js listener driver (glibc 2.38 or newer) can be proved on Debian 12.
# The package sources are the machine's own with another suite name; apt's state and cache are private to this run.
# Usage: .ci/newer-libc.sh [folder]      Prints the loader's path. Does nothing when the folder is complete.
set -eu

suite=trixie
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/.data/newer-libc}

loader_in() {
  find "$1" -name 'ld-linux-*.so.*' -type f 2>/dev/null | head -n 1
}

if [ -f "$folder/complete" ]; then
  loader_in "$folder"
  exit 0
fi

codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/unpacked" "$work/packages" "$work/none"

# One-line entries whose suite is exactly the codename (so neither -security nor -updates), with the suite replaced.
one_line_entries() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
    sed -n -E "s/^(deb( +\[[^]]*\])? +[^ ]+) +$codename( .*)$/\1 $suite\3/p"
}

# The same out of deb822 stanzas, written as one-line entries.
stanza_entries() {
  for file in /etc/apt/sources.list.d/*.sources; do
    [ -f "$file" ] || continue
    awk -v RS= -v codename="$codename" -v suite="$suite" '
      {
        types = uris = suites = components = signed = ""
        count = split($0, lines, "\n")
        for (i = 1; i <= count; i++) {
          value = lines[i]
          sub(/^[^:]*: */, "", value)
          if (lines[i] ~ /^Types:/) types = value
          if (lines[i] ~ /^URIs:/) uris = value
          if (lines[i] ~ /^Suites:/) suites = value
          if (lines[i] ~ /^Components:/) components = value
          if (lines[i] ~ /^Signed-By: *\//) signed = "[signed-by=" value "] "
        }
        if ((" " types " ") ~ / deb / && index(" " suites " ", " " codename " ") && uris != "" && components != "")
          print "deb " signed uris " " suite " " components
      }' "$file"
  done
}

{ one_line_entries; stanza_entries; } | sort -u >"$work/sources.list"
if [ ! -s "$work/sources.list" ]; then
  echo "newer-libc: no package source of this machine carries the suite $codename" >&2
  exit 1
fi

cat >"$work/apt.conf" <<CONF
Dir::Etc::SourceList "$work/sources.list";
Dir::Etc::SourceParts "$work/none";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "$work/none";
Dir::State "$work/state";
Dir::State::Status "/dev/null";
Dir::Cache "$work/cache";
APT::Sandbox::User "root";
APT::Update::Post-Invoke { };
APT::Update::Post-Invoke-Success { };
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Acquire::Languages "none";
Acquire::Retries "3";
CONF
APT_CONFIG="$work/apt.conf" apt-get -q update >&2
(cd "$work/packages" && APT_CONFIG="$work/apt.conf" apt-get -q download libc6 libstdc++6 libgcc-s1 >&2)
for package in "$work"/packages/*.deb; do
  dpkg-deb --extract "$package" "$work/unpacked"
done

loader=$(loader_in "$work/unpacked")
if [ -z "$loader" ]; then
  echo "newer-libc: the packages of $suite hold no loader" >&2
  exit 1
fi

# Only what the loader needs: the machine's own folders are not searched for these, and the rest of the packages is documentation.
rm -rf "$folder"
mkdir -p "$folder/lib"
cp "$loader" "$folder/"
find "$work/unpacked" ! -type d \( -name '*.so.*' -o -name '*.so' \) ! -path '*/gconv/*' ! -path '*/share/*' -exec cp -Pf {} "$folder/lib/" \;
touch "$folder/complete"
loader_in "$folder"
