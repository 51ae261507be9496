package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

// Leads returns who holds the lock of a pool and in which epoch, for those
// that look on: empty while nobody does. A holder that died without a word is
// named until another one takes over.
func Leads(ctx context.Context, b bus.Bus, pool string) (holder string, epoch uint64, err error) {
	if pool == "" {
		return "", 0, nil
	}
	bucket, err := b.Bucket(ctx, bucketLeaders)
	if err != nil {
		return "", 0, fmt.Errorf("find leader of %s: %w", pool, err)
	}
	value, _, err := bucket.Get(ctx, pool)
	if errors.Is(err, bus.ErrNotFound) {
		return "", 0, nil
	}
	var l lockRecord
	if err == nil {
		if err = json.Unmarshal(value, &l); err != nil {
			err = fmt.Errorf("%w: %w", trimtab.ErrInvalid, err)
		}
	}
	if err != nil {
		return "", 0, fmt.Errorf("find leader of %s: %w", pool, err)
	}
	return l.Holder, l.Epoch, nil
}
