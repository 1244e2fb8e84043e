#!/bin/sh
# Owns the folder .data/mcp-inspector: the MCP inspector, whose command line the tests use as a client written by others. It lives beside the
# project and is none of its dependencies: it brings a hundred packages of its own.
# Usage: .ci/mcp-inspector.sh [folder]      Does nothing when this version is there.
set -eu

version=2.12.0
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/.data/mcp-inspector}

if [ "$(cat "$folder/complete" 2>/dev/null)" = "$version" ]; then
  exit 0
fi

rm -rf "$folder"
mkdir -p "$folder"
echo '{ "private": true }' >"$folder/package.json"
npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error "@modelcontextprotocol/inspector@$version" >&2
echo "$version" >"$folder/complete"
