package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/whatif"
)

// WhatIf answers a what-if question from the console's read model.
type WhatIf func(change whatif.Change, now time.Time) (*whatif.Answer, error)

// maxAsking is how many what-if questions are solved at the same time; askingWithin is how long
// another one waits. Each uses a CPU for as long as a round does.
const maxAsking, askingWithin = 2, 3 * time.Second

// asking are the questions that are being solved.
type asking chan struct{}

// errBusy says that too many questions are being solved.
var errBusy = errors.New("answer what-if: others are being solved; ask again later")

// whatIfNow answers one question.
func (h *handler) whatIfNow(ctx context.Context, change whatif.Change) (*whatif.Answer, error) {
	if h.options.WhatIf == nil {
		return nil, fmt.Errorf("answer what-if: this process was started without a planner's configuration: %w", trimtab.ErrUnsupported)
	}
	ctx, cancel := context.WithTimeout(ctx, askingWithin)
	defer cancel()
	select {
	case h.asking <- struct{}{}:
		defer func() { <-h.asking }()
	case <-ctx.Done():
		return nil, errBusy
	}
	return h.options.WhatIf(change, time.Now())
}

// whatIf answers GET /api/v1/what-if?capacity:cpu=6&slo:checkout=200ms&weight:shop=2.
func (h *handler) whatIf(r *http.Request) (any, error) {
	change, err := changeOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return h.whatIfNow(r.Context(), change)
}

// maxChanges is the largest number of changes in one question.
const maxChanges = 1000

// changeOf reads the parameters of a question: KIND:NAME=VALUE.
func changeOf(query url.Values) (c whatif.Change, err error) {
	if len(query) > maxChanges {
		return c, trimtab.Invalidf("read what-if: %d parameters, limit %d", len(query), maxChanges)
	}
	for key, values := range query {
		kind, name, ok := strings.Cut(key, ":")
		value := values[len(values)-1]
		if !ok || value == "" {
			continue // another parameter of the page, or an empty field
		}
		switch kind {
		case "slo":
			if c.SLO == nil {
				c.SLO = map[string]string{}
			}
			c.SLO[name] = value
		case "capacity":
			err = numbered(&c.Capacity, kind, name, value)
		case "weight":
			err = numbered(&c.Weight, kind, name, value)
		default:
			err = trimtab.Invalidf("read what-if %.40q: want capacity:RESOURCE, slo:WORKLOAD or weight:WORKLOAD", key)
		}
		if err != nil {
			return whatif.Change{}, err
		}
	}
	return c, nil
}

func numbered(to *map[string]float64, kind, name, value string) error {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || !(v > 0) || v > 1e15 {
		return trimtab.Invalidf("read %s of %.40q: %.40q: want a number > 0", kind, name, value)
	}
	if *to == nil {
		*to = map[string]float64{}
	}
	(*to)[name] = v
	return nil
}
