# Sourced: `need PACKAGE...` installs the Debian packages of the list that are missing, as root or through sudo; nothing is
# asked of the network when all are there. On other systems it says what it would have installed and goes on.
need() {
	local package missing=()
	if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
		echo "not a Debian system; these packages or their like are needed: $*" >&2
		return 0
	fi
	for package in "$@"; do
		dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
	done
	[ ${#missing[@]} -eq 0 ] && return 0
	echo "installing: ${missing[*]}" >&2
	local root=()
	[ "$(id -u)" -eq 0 ] || root=(sudo)
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update </dev/null >&2 || true
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}" </dev/null >&2
}
build_packages=(gcc libc6-dev meson ninja-build pkg-config python3 zlib1g-dev libisal-dev libxxhash-dev libsqlite3-dev libiberty-dev libmicrohttpd-dev libcurl4-openssl-dev)
# Where Node.js does not come from Debian, npm came with it.
command -v npm >/dev/null || build_packages+=(npm)
# What a build with its tests needs, and what tests need beside it.
test_build_packages=("${build_packages[@]}" g++ libcmocka-dev libjansson-dev python3-dev libopenmpi-dev openmpi-bin)
test_packages=("${test_build_packages[@]}" clang libclang-rt-14-dev chromium-headless-shell firefox-esr python3-dbg python3-venv python3-pandas python3-torch libtorch-dev mypy mandoc man-db zsh fish abigail-tools openssl valgrind python3-boto3)
# What tools/deb needs beside what a build does.
deb_packages=(debhelper dh-python dpkg-dev fakeroot lintian python3-dev libcmocka-dev libjansson-dev libcurl4-openssl-dev)
