package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab/colocation"
)

// contributionsLast is how long contributions are shown after the last report.
const contributionsLast = time.Minute

// shownParts bounds the Servpods that people are shown.
const shownParts = 20

// Part is one Servpod's contribution to the tail latency, for people.
type Part struct {
	Component, Host string
	Sojourn         string
	// Share is its part of all contributions, Heat the same in tenths, 0 to 10.
	Share string
	Heat  int
	// Grew is its share of the growth of the tail, formatted; "": none.
	Grew       string
	LoadLimit  string
	SlackLimit string
}

// TailNow compares the tail latency with the SLO, in words.
func TailNow(c *colocation.Contributions) string {
	if c.Tail == nil {
		return "not known"
	}
	out := fmt.Sprintf("p%s %s at %s requests/s", Number(100*c.Quantile), Time(*c.Tail), Number(c.Load))
	if slack, ok := c.Slack(); ok && slack >= 0 {
		out += ", slack " + Percent(slack)
	} else if ok {
		out += ", " + Percent(-slack) + " over the SLO"
	}
	return out
}

// TailGrew says whether the tail grew, and in what.
func TailGrew(c *colocation.Contributions) string {
	switch g := c.Growth; {
	case g == nil:
		return "not known: too little traffic to compare with"
	case !g.Changed:
		return fmt.Sprintf("no change: p%s %s, %s before", Number(100*g.Quantile), Time(g.After), Time(g.Before))
	case len(g.Parts) == 0:
		return fmt.Sprintf("p%s %s -> %s, in no component that its spans name", Number(100*g.Quantile), Time(g.Before), Time(g.After))
	default:
		var parts []string
		for _, p := range g.Parts[:min(len(g.Parts), 3)] {
			parts = append(parts, fmt.Sprintf("%s (%s of it, %s -> %s)", servpod(p.Component, p.Host), Percent(p.Share), Time(p.Before), Time(p.After)))
		}
		return fmt.Sprintf("p%s %s -> %s since %s, in %s", Number(100*g.Quantile), Time(g.Before), Time(g.After), Clock(g.Since), strings.Join(parts, ", "))
	}
}

func servpod(component, host string) string {
	if host == "" {
		return component
	}
	return component + " on " + host
}

// Time prints seconds as people do: 12 ms, 1.2 s.
func Time(seconds float64) string {
	if seconds >= 1 {
		return Number(math.Round(seconds*100)/100) + " s"
	}
	return Number(math.Round(seconds*1e5)/100) + " ms"
}

// PartsOf are the Servpods that add most, first those that the tail grew in.
func PartsOf(c *colocation.Contributions) []Part {
	sum := 0.0
	for i := range c.Servpods {
		sum += max(0, c.Servpods[i].Contribution)
	}
	grew := map[[2]string]float64{}
	if c.Growth != nil {
		for _, p := range c.Growth.Parts {
			grew[[2]string{p.Component, p.Host}] = p.Share
		}
	}
	all := slices.Clone(c.Servpods)
	slices.SortStableFunc(all, func(a, b colocation.Servpod) int {
		return cmp.Or(cmp.Compare(grew[[2]string{b.Component, b.Host}], grew[[2]string{a.Component, a.Host}]),
			cmp.Compare(b.Contribution, a.Contribution), cmp.Compare(b.Sojourn, a.Sojourn))
	})
	var out []Part
	for _, s := range all[:min(len(all), shownParts)] {
		p := Part{Component: s.Component, Host: s.Host, Sojourn: Time(s.Sojourn), Share: "not known yet",
			LoadLimit: threshold(s.LoadLimit, s.Origin), SlackLimit: threshold(s.SlackLimit, s.SlackOrigin)}
		if sum > 0 {
			share := max(0, s.Contribution) / sum
			p.Share, p.Heat = Percent(share), int(math.Round(10*share))
		}
		if g := grew[[2]string{s.Component, s.Host}]; g > 0 {
			p.Grew = Percent(g)
		}
		out = append(out, p)
	}
	return out
}

func threshold(v *float64, origin colocation.ThresholdOrigin) string {
	if v == nil {
		return "not known"
	}
	return Percent(*v) + " (" + origin + ")"
}
