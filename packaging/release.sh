#!/usr/bin/env bash
# Builds, checks and tests what a release consists of, and prints how it would be published. It publishes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "error: $1" >&2; echo >&2; echo "hint: $2" >&2; exit 1; }

version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml | head -1)
[ -z "$(git status --porcelain)" ] || fail "the work tree has changes" "commit them, or stash them, first"
for file in Cargo.toml python/fathom/__init__.py; do
	grep -q "\"$version\"" "$file" || fail "$file does not say $version" "the version stands in pyproject.toml, Cargo.toml and python/fathom/__init__.py"
done
python3 packaging/notes.py "$version" >/dev/null || fail "CHANGELOG.md has no section $version" "rename its section Unreleased to \`## $version - $(date +%F)\`"

rm -rf dist
make docs wheel
make sdist
wheel=$(ls dist/*.whl)
FATHOM_WHEEL=$wheel .venv/bin/python -m pytest tests/test_wheel.py -q
python3 packaging/notes.py "$version" > dist/notes.md
(cd dist && sha256sum -- *.whl *.tar.gz > SHA256SUMS)

cat <<END

dist/ has version $version: $(cd dist && echo *)
Nothing was published. What would do it:

  git tag -a v$version -F dist/notes.md && git push origin v$version
  twine upload dist/*.whl dist/*.tar.gz
  gh release create v$version --notes-file dist/notes.md dist/*
END
