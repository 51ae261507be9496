package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// page prints docs/interop.md.
func page(during time.Duration, spans []outcome, series []scraped, alerts []alerted) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# What real senders send, and what trimtab counts

<!-- Printed by make interop. -->

Each sender below runs with the defaults of its library, beside a trimtab of its own
in mode recommend, and is asked for %d requests a second over %v. Each request asks
a dependency, which makes a SERVER and a CLIENT span; once a second the service
polls that dependency, which makes a CLIENT span without a parent, and is no request.
`+"`make interop`"+` installs all of them, tries them and prints this page. What could not be
had is named with the reason.

## Spans

*Load* is what trimtab said each half second, beginning %v after the first request:
mean, and least to most; *bound* the highest bound for a coming round. p50 and p95
are those of the client, and what trimtab said last.

| sender | what it sends | requests sent | load counted | bound | p50, p95 sent | p50, p95 counted | spans made | spans read |
|---|---|---|---|---|---|---|---|---|
`, int(rate), during, settle)
	for _, o := range spans {
		if o.Missing != nil {
			fmt.Fprintf(&b, "| %s (%s) | %s: %s | not tried: %s ||||||||\n", o.Name, o.Version, o.Route, o.Says, oneLine(o.Missing))
			continue
		}
		fmt.Fprintf(&b, "| %s (%s) | %s: %s | %s/s | %s | %s | %s, %s | %s, %s | %d | %s |\n", o.Name, o.Version, o.Route, o.Says, number(o.Sent.Rate), loads(&o.Counted), ifKnown(o.Counted.Upper),
			ms(o.Sent.P50), ms(o.Sent.P95), ms(o.Counted.P50), ms(o.Counted.P95), o.Spans, read(&o.Counted))
	}
	b.WriteString(`
## Series

A service counts exactly as many requests, is scraped every 5 s, and trimtab asks for
` + "`sum(rate(http_requests_total[30s]))`" + `.

| server | requests counted by the service | load read by trimtab | answers by result |
|---|---|---|---|
`)
	for _, o := range series {
		if o.Missing != nil {
			fmt.Fprintf(&b, "| %s (%s) | not tried: %s |||\n", o.Name, o.Version, oneLine(o.Missing))
			continue
		}
		fmt.Fprintf(&b, "| %s (%s) | %s/s | %s | %s |\n", o.Name, o.Version, number(o.Sent.Rate), loads(&o.Counted), results(o.Counted.Samples))
	}
	b.WriteString(`
## Alerts

One alert of the workload fires, and then is over.

| sender | fires | is over | messages by result | alerts by result |
|---|---|---|---|---|
`)
	for _, o := range alerts {
		if o.Missing != nil {
			fmt.Fprintf(&b, "| %s (%s) | not tried: %s ||||\n", o.Name, o.Version, oneLine(o.Missing))
			continue
		}
		fmt.Fprintf(&b, "| %s (%s) | %s | %s | %s | %s |\n", o.Name, o.Version, taken(o.Fired), taken(o.Resolved), results(o.Webhooks), results(o.Alerts))
	}
	return b.String()
}

func taken(ok bool) string {
	if ok {
		return "taken"
	}
	return "not taken"
}

// loads is "20.1/s (19 to 21)"; how often there was none is said.
func loads(c *counted) string {
	if c.Load == 0 {
		return "none"
	}
	text := number(c.Load) + "/s"
	if c.Least != c.Most {
		text += fmt.Sprintf(" (%s to %s)", number(c.Least), number(c.Most))
	}
	if c.Read < c.Loads {
		text += fmt.Sprintf(", missing in %d of %d readings", c.Loads-c.Read, c.Loads)
	}
	return text
}

func read(c *counted) string {
	if c.Loads == 0 {
		return "–" // of a file
	}
	text := fmt.Sprintf("%.0f", c.Accepted)
	if len(c.Refused) > 0 {
		text += "; refused: " + results(c.Refused)
	}
	return text
}

func results(by map[string]float64) string {
	if len(by) == 0 {
		return "none"
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s %.0f", k, by[k]))
	}
	return strings.Join(parts, ", ")
}

func number(v float64) string { return fmt.Sprintf("%.3g", v) }

func ifKnown(v float64) string {
	if v == 0 {
		return "–"
	}
	return number(v) + "/s"
}

func ms(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3g ms", float64(d)/1e6)
}

// oneLine is an error as a cell of a table.
func oneLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.ReplaceAll(fmt.Sprintf("%.300s", text), "|", "/")
}
