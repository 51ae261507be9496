// Package seen tells values that are delivered again from new ones. Whoever asks for the same a
// second time does so at another time, so that equal values are one.
package seen

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/trimtab/trimtab"
)

// most bounds how many values are remembered.
const most = 1024

// Values has the sums of the latest values. The zero Values has seen none.
type Values struct {
	seen  map[[sha256.Size]byte]bool
	order [][sha256.Size]byte // the oldest first
}

// Again reports whether a value was delivered before, and remembers it.
func (v *Values) Again(value trimtab.Value) bool {
	b, err := json.Marshal(value)
	if err != nil {
		return false // it is of text and times, which always marshal
	}
	sum := sha256.Sum256(append([]byte(value.Kind()), b...))
	if v.seen[sum] {
		return true
	}
	if v.seen == nil {
		v.seen = map[[sha256.Size]byte]bool{}
	}
	if len(v.order) == most {
		delete(v.seen, v.order[0])
		v.order = v.order[1:]
	}
	v.seen[sum], v.order = true, append(v.order, sum)
	return false
}
