package hostfs

import (
	"errors"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// Follower looks repeatedly for the groups of one location: a path, whose group has no name, or a
// pattern as in [Root.Instances].
type Follower struct {
	Path string
	// last is the last result; again is when to look next.
	last  []Instance
	again time.Duration
}

// lookAgainAfter is the pause after too many groups matched, since counting them takes long.
const lookAgainAfter = time.Minute

// Look returns the existing groups. While too many match a pattern, it returns the last result.
func (f *Follower) Look(r *Root) ([]Instance, error) {
	if !strings.Contains(f.Path, "*") {
		id, err := r.Inode(f.Path)
		if err != nil {
			return nil, err
		}
		return []Instance{{Path: f.Path, ID: id}}, nil
	}
	now := BootTime()
	if now < f.again {
		return f.last, nil
	}
	found, err := r.Instances(f.Path)
	if errors.Is(err, trimtab.ErrRefused) {
		f.again = now + lookAgainAfter
	}
	if err != nil {
		return f.last, err
	}
	f.last = found
	return found, nil
}
