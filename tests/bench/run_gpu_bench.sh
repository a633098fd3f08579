#!/bin/bash
# Measures everything on a machine with a GPU in about ten minutes: gpu_bench section by section, the
# vendor's sort, the pictures. Each part is a process of its own with its own time limit, so that a
# driver that hangs or crashes costs its part alone; what was measured before is on the disk.
#
# usage: tests/bench/run_gpu_bench.sh OUT [BUILD] [SECONDS] [ARGUMENTS OF gpu_bench...]
#   OUT      a new folder: report.md, gpu.csv, gpu-*.svg
#   BUILD    the build folder (build)
#   SECONDS  for all of it (600); a software rasteriser is refused unless --software is an argument
set -u
if [ $# -lt 1 ]; then
  sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
out=$1
build=${2:-build}
total=${3:-600}
here=$(cd "$(dirname "$0")" && pwd)
bench=$build/bin/gpu_bench
if [ ! -x "$bench" ]; then
  echo "no $bench: build it with cmake --build $build --target gpu_bench" >&2
  exit 2
fi
mkdir -p "$out" || exit 2

arguments=(--hardware)
for argument in "${@:4}"; do
  if [ "$argument" = --software ]; then
    arguments=("${arguments[@]:1}")
  else
    arguments+=("$argument")
  fi
done

# Whether there is a device at all.
"$bench" "${arguments[@]}" --sections counts --smoke >/dev/null || exit 1

failed=()
# part NAME SECONDS COMMAND...: its output to the report, and that it failed, if it did.
part() {
  local name=$1 limit=$2 status
  shift 2
  echo "== $name, at most $limit s" >&2
  timeout -k 5 "$limit" "$@" >>"$out/report.md" 2>"$out/$name.err"
  status=$?
  if [ $status -ne 0 ]; then
    failed+=("$name")
    {
      echo
      echo "**Part $name failed**, exit status $status (124 and 137: it ran out of time):"
      echo
      tail -c 2000 "$out/$name.err" | sed 's/^/    /'
    } >>"$out/report.md"
  fi
  [ -s "$out/$name.err" ] || rm -f "$out/$name.err"
}

# section NAME SHARE: so many hundredths of the time; half as much again before it is ended.
section() {
  part "$1" $((total * $2 * 3 / 200 + 20)) "$bench" "${arguments[@]}" --sections "$1" \
    --total $((total * $2 / 100 + 1)) --csv "$out/gpu.csv"
}

# What decides most comes first.
section counts 2
section bus 20
section sorters 30
part vendor $((total * 8 / 100 + 60)) \
  python3 "$here/vendor_sort.py" --csv "$out/gpu.csv" --seconds 0.3
section tiles 10
section abisort 10
section pbsn 8
section reduction 10
part pictures 60 python3 "$here/../../docs/draw_gpu.py" "$out/gpu.csv" --out "$out"

echo "report: $out/report.md, rows: $out/gpu.csv" >&2
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
