package cli

import (
	"cmp"

	"github.com/prometheus/common/version"
)

// thisRelease is the version of this source. The Makefile, the packages and the tag
// v0.2.0 take it from here; the revision of a build is from its Git checkout.
const thisRelease = "0.2.0"

// WithVersion names the release where the linker named no other.
func WithVersion() {
	version.Version = cmp.Or(version.Version, thisRelease)
}
