package bus

import (
	"context"
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/topic"
)

// Follow gives every value of the kinds to observe, for parts that only watch; a plan that
// travels in pieces is reassembled. With history, Durable kinds begin with all that is still
// stored. observe is called by one goroutine per kind; stop ends all of them.
func Follow(ctx context.Context, b Bus, history bool, observe func(trimtab.Value), kinds ...trimtab.Kind) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	for _, k := range kinds {
		info, _ := topic.Of(k)
		var plans joiner
		tell := func(v trimtab.Value) {
			p, ok := v.(*trimtab.Plan)
			if !ok {
				observe(v)
				return
			}
			for _, whole := range plans.add(p) {
				observe(whole)
			}
		}
		s, err := b.Subscribe(ctx, Subscription{
			Kind: k, History: history && info.Delivery == topic.Durable,
			Handle: func(_ context.Context, d Delivery) error { tell(d.Value); return nil },
		})
		if err != nil {
			stop()
			return nil, fmt.Errorf("follow %s: %w", k, err)
		}
		stops = append(stops, s)
	}
	return stop, nil
}
