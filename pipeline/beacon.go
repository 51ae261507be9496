package pipeline

import (
	"context"
	"encoding/json"
	"time"

	"github.com/trimtab/trimtab/bus"
)

// beacon watches the leader's lock for a part that follows plans. A name in the lock does not prove
// that its holder is alive; a renewal does.
type beacon struct {
	bucket   bus.Bucket
	holder   string
	revision uint64
	moved    time.Time // when revision was first seen; zero: it existed before
	since    time.Time // since when there is a leader; zero: none is known
}

// lookTimeout bounds one look.
const lookTimeout = time.Second

// lookForLeader checks whether a planner leads the pool that the part follows. If the lock cannot
// be read, nothing changes: other checks report that the bus is away.
func (h *Health) lookForLeader(ctx context.Context, b bus.Bus) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	l := &h.leader // only this goroutine changes bucket, revision and moved
	if l.bucket == nil {
		bucket, err := b.Bucket(ctx, bucketLeaders)
		if err != nil {
			return
		}
		l.bucket = bucket
	}
	raw, revision, err := l.bucket.Get(ctx, h.work.Follows)
	var r lockRecord
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return
	}
	now := time.Now()
	if revision != l.revision && l.revision != 0 {
		l.moved = now
	}
	l.revision = revision
	term := min(max(r.Term, defaultTerm.Seconds()), maxTerm.Seconds())
	alive := r.Holder != "" && !l.moved.IsZero() && now.Sub(l.moved).Seconds() < term
	h.mu.Lock()
	defer h.mu.Unlock()
	l.holder = r.Holder
	switch {
	case !alive:
		l.since = time.Time{}
	case l.since.IsZero():
		l.since = now
	}
}
