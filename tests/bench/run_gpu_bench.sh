#!/bin/sh
# Measures everything on a machine with a GPU in about ten minutes: gpu_bench section by section, the
# vendor's sort, the pictures. Each part is a process of its own with its own time limit, so that a
# driver that hangs or crashes costs its part alone; what was measured before is on the disk.
#
# usage: tests/bench/run_gpu_bench.sh OUT [BUILD] [SECONDS] [ARGUMENTS OF gpu_bench...]
#   OUT      a new folder: report.md, gpu.csv, gpu-*.svg
#   BUILD    the build folder (build)
#   SECONDS  for all of it (600); a software rasteriser is refused unless --software is an argument
set -u
[ $# -ge 1 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$1
build=${2:-build}
total=${3:-600}
[ $# -gt 3 ] && shift 3 || shift $#
here=$(cd "$(dirname "$0")" && pwd)
bench=$build/bin/gpu_bench
[ -x "$bench" ] || { echo "no $bench: build it with cmake --build $build --target gpu_bench" >&2; exit 2; }
mkdir -p "$out" || exit 2

hardware=--hardware
rest=
for argument; do
  case $argument in
    --software) hardware= ;;
    *) rest="$rest $argument" ;;
  esac
done

# Whether there is a device at all, and what it is.
"$bench" $hardware --sections counts --smoke >"$out/device" || exit 1
rm -f "$out/device"

failed=
# part NAME SECONDS COMMAND...: its output to the report, and that it failed, if it did.
part() {
  name=$1
  limit=$2
  shift 2
  echo "== $name, at most $limit s" >&2
  timeout -k 5 "$limit" "$@" >>"$out/report.md" 2>"$out/$name.err"
  status=$?
  if [ $status -ne 0 ]; then
    failed="$failed $name"
    printf '\n**Part `%s` failed** (exit status %s; 124 and 137: it ran out of time):\n\n```\n%s\n```\n' \
      "$name" "$status" "$(tail -c 2000 "$out/$name.err")" >>"$out/report.md"
  fi
  [ -s "$out/$name.err" ] || rm -f "$out/$name.err"
}

# section NAME SHARE: of a hundred parts of the time; half as much again before it is ended.
section() {
  part "$1" $((total * $2 * 3 / 200 + 10)) "$bench" $hardware --sections "$1" --total \
    $((total * $2 / 100 + 1)) --csv "$out/gpu.csv" $rest
}

# What decides most first.
section counts 2
section bus 20
section sorters 30
part vendor $((total * 8 / 100 + 60)) python3 "$here/vendor_sort.py" --csv "$out/gpu.csv" --seconds 0.3
section tiles 10
section abisort 10
section pbsn 8
section reduction 10
part pictures 60 python3 "$here/../../docs/draw_gpu.py" "$out/gpu.csv" --out "$out"

echo "report: $out/report.md, rows: $out/gpu.csv" >&2
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
