package alertmanager

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/trimtab/trimtab"
)

const (
	// maxAlerts bounds the alerts of one body. The smallest real one takes
	// over a hundred bytes.
	maxAlerts = 10_000
	// maxLabels bounds the labels of one alert: with more it is malformed.
	maxLabels = 256
	// maxName, maxGroup and maxSummary bound texts, in bytes.
	maxName, maxGroup, maxSummary = 200, 200, 500
)

// labels are texts by name; values that are not texts are left out.
type labels map[string]string

// UnmarshalJSON reads an object leniently: anything else, and an object larger than any alert
// has, leaves l empty.
func (l *labels) UnmarshalJSON(b []byte) error {
	*l = nil
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	read := labels{}
	for n := 0; d.More(); n++ {
		name, err := d.Token()
		var v json.RawMessage
		if err != nil || n >= maxLabels || d.Decode(&v) != nil {
			return nil
		}
		if s, ok := textOf(v); ok {
			read[name.(string)] = s
		}
	}
	*l = read
	return nil
}

// text is a JSON string; any other value is the empty text.
type text string

// UnmarshalJSON reads leniently.
func (t *text) UnmarshalJSON(b []byte) error {
	s, _ := textOf(b)
	*t = text(s)
	return nil
}

func textOf(b json.RawMessage) (string, bool) {
	var s string
	if len(b) == 0 || b[0] != '"' || json.Unmarshal(b, &s) != nil {
		return "", false
	}
	return s, true
}

// envelope is the body around its alerts.
type envelope struct {
	Version     json.RawMessage `json:"version"`
	Receiver    text            `json:"receiver"`
	Status      text            `json:"status"`
	GroupKey    text            `json:"groupKey"`
	GroupLabels labels          `json:"groupLabels"`
	Truncated   json.RawMessage `json:"truncatedAlerts"`
	Alerts      json.RawMessage `json:"alerts"`
}

// received is one alert as received.
type received struct {
	Status      text   `json:"status"`
	Labels      labels `json:"labels"`
	Annotations labels `json:"annotations"`
	StartsAt    text   `json:"startsAt"`
	EndsAt      text   `json:"endsAt"`
	Fingerprint text   `json:"fingerprint"`
}

// message is a body that was understood.
type message struct {
	// group names the group of alerts, for the limit of rounds.
	group string
	// truncated is the number of alerts that the sender left out.
	truncated uint32
	// malformed are alerts without a status or labels; they are left out.
	malformed int
	alerts    int
}

// decode reads a body and passes its alerts on one at a time, so that no body takes much more
// memory than its size. The error is trimtab.ErrInvalid.
func decode(body []byte, take func(group string, a *received)) (message, error) {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return message{}, fmt.Errorf("read webhook: %w: %w", trimtab.ErrInvalid, err)
	}
	if v := strings.Trim(string(e.Version), `"`); v != "" && v != "4" && v != "1" && v != "null" {
		return message{}, trimtab.Invalidf("read webhook: version %.20q: want 4", v)
	}
	m := message{group: e.group(), truncated: e.truncated()}
	d := json.NewDecoder(bytes.NewReader(e.Alerts))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return message{}, trimtab.Invalidf("read webhook: no list of alerts")
	}
	for d.More() {
		if m.alerts++; m.alerts > maxAlerts {
			return message{}, trimtab.Invalidf("read webhook: more than %d alerts", maxAlerts)
		}
		var a received
		// The text is valid JSON, so an error means that the alert is not an object.
		if err := d.Decode(&a); err != nil || !a.complete(e.Status) {
			m.malformed++
			continue
		}
		take(m.group, &a)
	}
	return m, nil
}

// complete derives missing fields, and reports whether a is a valid alert.
func (a *received) complete(status text) bool {
	a.Status = cmp.Or(a.Status, status)
	if len(a.Labels) == 0 || a.Status != "firing" && a.Status != "resolved" {
		return false
	}
	if a.Fingerprint == "" {
		a.Fingerprint = text(digest(a.Labels))
	}
	return true
}

// alert returns the value for one workload.
func (a *received) alert(workload, group string, now time.Time) *trimtab.Alert {
	out := &trimtab.Alert{
		Workload: workload, Name: clean(a.Labels["alertname"], maxName), Group: group,
		Fingerprint: short(string(a.Fingerprint), 64), Firing: a.Status == "firing", Time: now,
		Summary: clean(a.Annotations["summary"], maxSummary),
	}
	out.Name = cmp.Or(out.Name, "unnamed")
	out.Started = timeOf(a.StartsAt)
	// Most senders leave the end of a firing alert open, as the year 1.
	if t := timeOf(a.EndsAt); out.Firing && t.After(now) {
		out.Until = t
	}
	return out
}

// timeOf parses a time; an invalid one is the zero time.
func timeOf(s text) time.Time {
	t, err := time.Parse(time.RFC3339, string(s))
	if err != nil || t.UTC().Year() <= 1 || t.UTC().Year() >= 10000 {
		return time.Time{}
	}
	return t.UTC()
}

// group returns groupKey or, without one, a key built from the same parts.
func (e *envelope) group() string {
	if e.GroupKey != "" {
		return short(string(e.GroupKey), maxGroup)
	}
	return short(string(e.Receiver)+":"+printed(e.GroupLabels), maxGroup)
}

func (e *envelope) truncated() uint32 {
	n, err := strconv.ParseUint(string(e.Truncated), 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// printed returns labels as {a="b",c="d"}, in order of name.
func printed(l labels) string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(l)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(name + "=" + strconv.Quote(l[name]))
	}
	return "{" + b.String() + "}"
}

func digest(l labels) string {
	sum := sha256.Sum256([]byte(printed(l)))
	return hex.EncodeToString(sum[:8])
}

// short returns s cleaned; if it is too long, its end is replaced by a digest, so that different
// texts stay different.
func short(s string, most int) string {
	c := clean(s, most)
	if c == s {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return clean(s, most-20) + "~" + hex.EncodeToString(sum[:8])
}

// clean returns a foreign text that can be shown on one line: printable characters only, cut to
// most bytes.
func clean(s string, most int) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			r = ' '
		case !unicode.IsPrint(r):
			r = utf8.RuneError
		}
		if b.Len()+utf8.RuneLen(r) > most {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}
