package hostfs

import (
	"strings"

	"github.com/trimtab/trimtab"
)

// exclude is before each name that a pattern leaves out, as in
// machine.slice/libpod-*.scope !conmon-* !test.
const exclude = " !"

// PlainPattern returns a pattern without the names that it excludes.
func PlainPattern(pattern string) string {
	plain, _, _ := strings.Cut(pattern, exclude)
	return plain
}

// leftOut returns the names that the * of a pattern must not match, each with at most one * of
// its own.
func leftOut(pattern string) ([]string, error) {
	all := strings.Split(pattern, exclude)[1:]
	for _, p := range all {
		if p == "" || strings.Count(p, "*") > 1 || strings.Contains(p, "/") {
			return nil, trimtab.Invalidf("want names behind !, each with at most one *, as in libpod-*.scope !conmon-*")
		}
	}
	return all, nil
}

// matches reports whether a name matches a pattern, in which * matches any text.
func matches(pattern, name string) bool {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return name == pattern
	}
	return len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}

// companion reports whether a group beside a container's is only its monitor: podman and CRI-O
// start one for each container, in a group of its own. A pattern that names it matches it.
func companion(group, prefix string) bool {
	for _, monitor := range []string{"libpod-conmon-", "crio-conmon-"} {
		if strings.HasPrefix(group, monitor) && !strings.HasPrefix(prefix, monitor) {
			return true
		}
	}
	return false
}
