package console

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/trimtab/trimtab/console/view"
)

// column is the head of a column that can be sorted by.
type column struct{ Label, Href, Aria string }

// Column is the head of a column: its link sorts by the column, and then the other way
// round.
func (o *overview) Column(key, label string) column {
	c := column{Label: label}
	next := key
	switch o.sort {
	case key:
		c.Aria, next = "ascending", "-"+key
	case "-" + key:
		c.Aria, next = "descending", ""
	}
	q := url.Values{}
	if o.Query != "" {
		q.Set("q", o.Query)
	}
	if next != "" {
		q.Set("sort", next)
	}
	c.Href = "?" + q.Encode()
	return c
}

// Spark is the path of a workload's performance over the last hour in a box of 100 by
// 20; "": there is too little.
func (o *overview) Spark(r view.Row) string {
	points := o.trends[r.Name]
	most, n := 1.0, 0
	for _, p := range points {
		if p != nil {
			n++
			if !r.Share {
				most = max(most, *p)
			}
		}
	}
	if n < 3 {
		return ""
	}
	var b strings.Builder
	down := false
	for i, p := range points {
		if p == nil {
			down = false
			continue
		}
		verb := "M"
		if down {
			verb = "L"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", verb, 100*float64(i)/float64(len(points)-1), 20-19*min(1, max(0, *p/most)))
		down = true
	}
	return b.String()
}
