package hostfs

import (
	"strconv"
	"strings"
)

// Keyed returns the number on the line of a name in a flat keyed file of the kernel, such as
// memory.stat and memory.events; false: there is no such line, or its value is no number.
//
//	anon 13004800
//	inactive_file 307200
func Keyed(text, name string) (uint64, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok && strings.HasPrefix(rest, " ") {
			v, err := strconv.ParseUint(strings.TrimSpace(rest), 10, 63)
			return v, err == nil
		}
	}
	return 0, false
}
