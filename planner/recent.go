package planner

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/trimtab/trimtab"
)

// maxRecent bounds how many values are remembered, to tell one that is delivered
// again.
const maxRecent = 1024

// recent has the sums of the latest commands and alerts. Whoever asks for the same
// a second time does so at another time, so that equal values are one.
type recent struct {
	seen  map[[sha256.Size]byte]bool
	order [][sha256.Size]byte // the oldest first
}

// again reports whether v was delivered before, and remembers it.
func (r *recent) again(v trimtab.Value) bool {
	b, err := json.Marshal(v)
	if err != nil {
		return false // it is of text and times, which always marshal
	}
	sum := sha256.Sum256(append([]byte(v.Kind()), b...))
	if r.seen[sum] {
		return true
	}
	if r.seen == nil {
		r.seen = map[[sha256.Size]byte]bool{}
	}
	if len(r.order) == maxRecent {
		delete(r.seen, r.order[0])
		r.order = r.order[1:]
	}
	r.seen[sum], r.order = true, append(r.order, sum)
	return false
}
